package dashboard

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/view"
)

// tile is what the page needs to draw a node; the rest is in its story.
type tile struct {
	Name  string          `json:"name"`
	State readiness.State `json:"state"`
	// Since is when the longest hold began, in seconds; 0 if it is not held or nobody knows.
	Since int64 `json:"since,omitempty"`
	// Moving says that the node is not yet as rules want it.
	Moving bool `json:"moving,omitempty"`
	// Down says that the kubelet does not say that the node is Ready.
	Down bool `json:"down,omitempty"`
	// Rules are those that select the node or hold it, and whether they do.
	Rules map[string]readiness.State `json:"rules,omitempty"`
	// Missing are the requirements that hold it back.
	Missing []string `json:"missing,omitempty"`
}

func tileOf(n view.Node) tile {
	t := tile{Name: n.Name, State: n.State, Since: seconds(n.Since), Moving: !n.Settled, Down: n.Ready != corev1.ConditionTrue}
	for _, s := range n.Rules {
		state := readiness.Released
		switch {
		case s.Held:
			state = readiness.Held
		case s.State == readiness.NotSelected:
			continue
		}
		if t.Rules == nil {
			t.Rules = map[string]readiness.State{}
		}
		t.Rules[s.Rule] = state
		if s.Preview && !s.Held {
			continue
		}
		for _, m := range s.Missing {
			if text := m.String(); !slices.Contains(t.Missing, text) {
				t.Missing = append(t.Missing, text)
			}
		}
	}
	return t
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
