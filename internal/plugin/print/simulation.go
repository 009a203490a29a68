package print

import (
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// shortList is the number of listed nodes without -o wide.
const shortList = 50

// changes are the words for the change of a node.
var changes = map[noderule.ChangeKind]string{
	noderule.Added:   "is held",
	noderule.Adopted: "stays held",
	noderule.Removed: "is released",
}

// Simulation returns the effect of rules.
func Simulation(s view.Simulation, wide bool) Lines {
	var lines Lines
	when := "now"
	if !s.AsOf.IsZero() {
		when = "at " + s.AsOf.UTC().Format(time.RFC3339)
	}
	lines.add("If this were applied %s (%s evaluated, nothing changed):", when, count(s.Nodes, "node"))
	lines.add("")
	var rows [][]string
	for _, r := range s.Rules {
		rows = append(rows, []string{r.Name, r.Taint, string(r.Mode), strconv.Itoa(r.Count.Selected), strconv.Itoa(r.Count.Held), strconv.Itoa(r.Count.Released)})
	}
	lines.table([]string{"RULE", "TAINT", "MODE", "SELECTED", "HELD", "RELEASED"}, rows)
	lines.add("")
	for _, name := range s.Replaced {
		lines.add("Rule %s cannot be changed in place: this shows the effect of deleting and recreating it.", name)
	}
	for _, r := range s.Rules {
		lines.simulated(r)
	}
	lines.evictions(s.Effects)
	lines.effects(s.Effects, wide)
	return lines
}

// simulated adds what the counts of a rule do not show.
func (l *Lines) simulated(r view.Rule) {
	switch {
	case r.Standing == v1alpha1.ReasonConflict || r.Standing == v1alpha1.ReasonInvalid:
		l.add("Rule %s would have no effect (%s): %s", r.Name, r.Standing, r.Message)
	case r.Count.Selected == 0:
		l.add("Rule %s selects no node (%s): compare with kubectl get nodes --show-labels", r.Name, r.Selector)
	case r.Count.Limited > 0:
		l.add("Rule %s leaves %s released although its conditions are not met there: maxUnavailable is reached.", r.Name, count(r.Count.Limited, "node"))
	}
	if r.Count.Stuck > 0 {
		l.add("Rule %s has held %s for longer than progressDeadlineSeconds.", r.Name, count(r.Count.Stuck, "node"))
	}
}

func (l *Lines) evictions(effects []view.Effect) {
	evicted := map[string]int{}
	var taints []string
	for _, e := range effects {
		if e.Evicts {
			if evicted[e.Taint] == 0 {
				taints = append(taints, e.Taint)
			}
			evicted[e.Taint]++
		}
	}
	for _, taint := range taints {
		l.add("EVICTIONS: pods that do not tolerate %s would be evicted from %s.", taint, count(evicted[taint], "node"))
	}
}

// causes are the words for causes other than the requirements.
var causes = map[noderule.Cause]string{
	noderule.CauseMinReady:   "met, but not for minReadySeconds yet",
	noderule.CauseNotReady:   "not Ready, may return from a reboot (bootstrapScope Boot)",
	noderule.CauseDependency: "another rule must release it first (dependsOn)",
	noderule.CauseDeadline:   "at the deadline, although",
}

// reason returns why the node would change.
func reason(e view.Effect) string {
	parts := make([]string, 0, len(e.Missing))
	for _, m := range e.Missing {
		parts = append(parts, m.String())
	}
	return strings.TrimSpace(causes[e.Cause] + " " + strings.Join(parts, "; "))
}

func (l *Lines) effects(effects []view.Effect, wide bool) {
	if len(effects) == 0 {
		l.add("No node taints would change.")
		return
	}
	shown := effects
	if !wide && len(shown) > shortList {
		shown = shown[:shortList]
	}
	var rows [][]string
	for _, e := range shown {
		word := changes[e.Change]
		if e.Evicts {
			word += ", EVICTS"
		}
		rows = append(rows, []string{e.Node, word, e.Rule, reason(e)})
	}
	nodes := map[string]bool{}
	for _, e := range effects {
		nodes[e.Node] = true
	}
	l.add("%s would change:", count(len(nodes), "node"))
	l.add("")
	l.table([]string{"NODE", "CHANGE", "RULE", "WHY"}, rows)
	if more := len(effects) - len(shown); more > 0 {
		l.add("… and %d more: -o wide lists them all", more)
	}
}
