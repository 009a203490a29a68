package dashboard

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// tile is what the page needs to draw a node; the rest is in its story.
type tile struct {
	Name  string         `json:"name"`
	State noderule.State `json:"state"`
	// Since is when the longest hold began, in seconds; 0 if it is not held or nobody knows.
	Since int64 `json:"since,omitempty"`
	// Moving says that the node is not yet as rules want it.
	Moving bool `json:"moving,omitempty"`
	// Down says that the kubelet does not say that the node is Ready.
	Down bool `json:"down,omitempty"`
	// Rules are those that select the node or hold it, and whether they do.
	Rules map[string]noderule.State `json:"rules,omitempty"`
	// Missing are the requirements that hold it back.
	Missing []string `json:"missing,omitempty"`

	// Stuck are the rules that have held the node for longer than their deadline, and Limited
	// those that leave it released only because of maxUnavailable.
	Stuck   []string `json:"stuck,omitempty"`
	Limited []string `json:"limited,omitempty"`
	// Until is when the last of its requirements will have been met for long enough, in seconds;
	// 0 if no rule waits for that.
	Until int64 `json:"until,omitempty"`
	// Causes are the words for what else a rule waits for, or why it does not.
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

// explain adds why the rule holds the node, or does not.
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
		t.Causes = append(t.Causes, s.Rule+" holds it while it is not Ready: it may come back from a reboot")
	case noderule.CauseDeadline:
		t.Causes = append(t.Causes, s.Rule+" released it by the deadline")
	case noderule.CauseDependency:
		t.Causes = append(t.Causes, s.Rule+" waits for rule "+s.WaitsFor)
	}
}

func tilesOf(nodes []view.Node) []tile {
	tiles := make([]tile, len(nodes))
	for i, n := range nodes {
		tiles[i] = tileOf(n)
	}
	return tiles
}

func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}
