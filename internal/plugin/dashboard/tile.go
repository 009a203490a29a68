package dashboard

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// tile has the data that the page needs to draw a node. The explanation has the rest.
type tile struct {
	Name  string         `json:"name"`
	State noderule.State `json:"state"`
	// Since is when the longest hold began, in seconds; 0 if the node is not held or the time is unknown.
	Since int64 `json:"since,omitempty"`
	// Moving means that the manager has not applied all changes to the node yet.
	Moving bool `json:"moving,omitempty"`
	// Down means that the node's condition Ready is not True.
	Down bool `json:"down,omitempty"`
	// Rules are the rules that select or hold the node, each with its state.
	Rules map[string]noderule.State `json:"rules,omitempty"`
	// Missing are the unmet requirements.
	Missing []string `json:"missing,omitempty"`

	// Stuck are the rules that have held the node for longer than their deadline. Limited are the rules that leave it
	// released only because of maxUnavailable.
	Stuck   []string `json:"stuck,omitempty"`
	Limited []string `json:"limited,omitempty"`
	// Until is when the last minReadySeconds will have passed, in seconds; 0 if no rule waits for that.
	Until int64 `json:"until,omitempty"`
	// Causes are the other reasons for the states of rules, in words.
	Causes []string `json:"causes,omitempty"`
}

func tileOf(n view.Node) tile {
	t := tile{Name: n.Name, State: n.State, Since: seconds(n.Since), Moving: !n.Settled, Down: n.Ready != corev1.ConditionTrue}
	for _, s := range n.Rules {
		state := noderule.Released
		switch {
		case s.Held:
			state = noderule.Held
		case s.State == noderule.NotSelected:
			continue
		}
		if t.Rules == nil {
			t.Rules = map[string]noderule.State{}
		}
		t.Rules[s.Rule] = state
		if !s.Preview || s.Held {
			t.explain(s)
		}
	}
	return t
}

// explain adds why the rule holds or releases the node.
func (t *tile) explain(s view.Standing) {
	for _, m := range s.Missing {
		if text := m.String(); !slices.Contains(t.Missing, text) {
			t.Missing = append(t.Missing, text)
		}
	}
	if s.Stuck {
		t.Stuck = append(t.Stuck, s.Rule)
	}
	switch s.Cause {
	case noderule.CauseLimit:
		t.Limited = append(t.Limited, s.Rule)
	case noderule.CauseMinReady:
		t.Until = max(t.Until, seconds(s.Until))
	case noderule.CauseNotReady:
		t.Causes = append(t.Causes, s.Rule+" holds the node while it is not Ready: it may return from a reboot")
	case noderule.CauseDeadline:
		t.Causes = append(t.Causes, s.Rule+" released it at the deadline")
	case noderule.CauseDependency:
		t.Causes = append(t.Causes, s.Rule+" waits for rule "+s.WaitsFor)
	}
}

// each converts all elements of a list.
func each[S, T any](all []S, convert func(S) T) []T {
	converted := make([]T, len(all))
	for i, element := range all {
		converted[i] = convert(element)
	}
	return converted
}

func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}

// podRow has the data that the page needs to show a waiting pod. The explanation has the rest.
type podRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	// Gate names the gates for which the pod waits, and For describes what they wait for.
	Gate string `json:"gate"`
	For  string `json:"for"`
	// Since is since when the pod waits, and Due when it is late, in seconds; 0 if unknown or never.
	Since int64 `json:"since,omitempty"`
	Due   int64 `json:"due,omitempty"`
}

func podRowOf(p view.Pod) podRow {
	row := podRow{Namespace: p.Namespace, Name: p.Name, Node: p.Node, Since: seconds(p.Since)}
	var gates, reasons []string
	for _, g := range p.Gates {
		if !g.Waits() {
			continue
		}
		gates, reasons = append(gates, g.Name), append(reasons, g.For)
		if due := seconds(g.Due); due > 0 && (row.Due == 0 || due < row.Due) {
			row.Due = due
		}
	}
	row.Gate, row.For = strings.Join(gates, ", "), strings.Join(reasons, "; ")
	return row
}
