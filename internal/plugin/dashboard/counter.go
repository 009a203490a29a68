package dashboard

import (
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
)

// counter counts nodes, changed line by changed line.
type counter struct {
	states map[string]noderule.State
	all    map[noderule.State]int
	rules  map[string]counts
}

func newCounter(snapshot live.Snapshot) *counter {
	c := &counter{states: map[string]noderule.State{}, all: map[noderule.State]int{}}
	c.apply(live.Delta{Rules: snapshot.Rules, Nodes: snapshot.Nodes})
	return c
}

func (c *counter) apply(delta live.Delta) {
	for _, n := range delta.Nodes {
		c.forget(n.Name)
		c.states[n.Name] = n.State
		c.all[n.State]++
	}
	for _, name := range delta.Gone {
		c.forget(name)
	}
	if delta.Rules != nil {
		c.rules = make(map[string]counts, len(delta.Rules)) // a new one: samples keep the old
		for _, rule := range delta.Rules {
			c.rules[rule.Name] = counts{Held: rule.Count.Held, Released: rule.Count.Released}
		}
	}
}

func (c *counter) forget(name string) {
	if state, known := c.states[name]; known {
		c.all[state]--
		delete(c.states, name)
	}
}

func (c *counter) sample(at time.Time) sample {
	all := counts{Held: c.all[noderule.Held], Released: c.all[noderule.Released], NotSelected: c.all[noderule.NotSelected]}
	return sample{at: at, all: all, rules: c.rules}
}
