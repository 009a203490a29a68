package print

import (
	"fmt"
	"slices"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// The words for nodes that a rule holds for longer than its deadline, and for those that it leaves
// released only because of maxUnavailable.
const (
	stuck   = "stuck"
	limited = "limited"
)

// harmOf is the word for how one rule stands with a node; empty if there is none.
func harmOf(s view.Standing) string {
	switch {
	case s.Preview && !s.Held:
		return ""
	case s.Stuck:
		return stuck
	case s.Cause == noderule.CauseLimit:
		return limited
	}
	return ""
}

// harm are the words for a node, each once.
func harm(n view.Node) []string {
	var words []string
	for _, word := range []string{stuck, limited} {
		if slices.ContainsFunc(n.Rules, func(s view.Standing) bool { return harmOf(s) == word }) {
			words = append(words, word)
		}
	}
	return words
}

// causeOf says why a rule does not do what its requirements alone ask for; empty if it does.
func causeOf(s view.Standing, now time.Time) string {
	switch s.Cause {
	case noderule.CauseMinReady:
		return fmt.Sprintf("%s is met, %s more until %s (minReadySeconds)", s.Rule, view.Age(now, s.Until), s.Until.In(now.Location()).Format(time.TimeOnly))
	case noderule.CauseNotReady:
		return "not Ready, may come back from a reboot"
	case noderule.CauseLimit:
		return s.Rule + " would hold it (maxUnavailable)"
	case noderule.CauseDeadline:
		return "released by the deadline of " + s.Rule
	case noderule.CauseDependency:
		return s.Rule + " waits for rule " + s.WaitsFor
	}
	return ""
}
