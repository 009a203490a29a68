package turnstile

import (
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// crowd is requests with names before the turnstile, so that a test can tell who is let in.
type crowd struct {
	*places
	now   time.Time
	names map[*pass]string
	in    []*pass // in the order in which they were let in
}

func newCrowd(most int) *crowd {
	return &crowd{places: newPlaces(most), now: noon, names: map[*pass]string{}}
}

// come lets requests arrive and says who is let in then, of all who wait.
func (c *crowd) come(n need, names ...string) []string {
	var let []string
	for _, name := range names {
		r := &pass{need: n}
		c.names[r] = name
		c.arrive(r, c.now)
		if r.waits == nil {
			c.in, let = append(c.in, r), append(let, name)
		}
		let = append(let, c.look()...)
	}
	return let
}

// look says who is let in now.
func (c *crowd) look() []string {
	var let []string
	for r := c.next(c.now); r != nil; r = c.next(c.now) {
		c.in, let = append(c.in, r), append(let, c.names[r])
	}
	return let
}

// end ends the request that was let in first, and says who is let in then.
func (c *crowd) end(o outcome, pause time.Duration) []string {
	r := c.in[0]
	c.in = c.in[1:]
	c.leave(r, o, pause, c.now)
	return c.look()
}

// with has so many requests under way.
func (c *crowd) with(count int, n need) *crowd {
	for range count {
		c.come(n, "before")
	}
	return c
}

func (c *crowd) wantIn(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: let in %v, want %v", when, got, want)
	}
}

func (c *crowd) wantLimits(t *testing.T, when string, want ...int) {
	t.Helper()
	if !slices.Equal(c.limit[:], want) {
		t.Errorf("%s: limits %v, want %v", when, c.limit, want)
	}
}

func TestFreePlacesAreGivenAtOnce(t *testing.T) {
	c := newCrowd(8)
	c.wantIn(t, "nobody is there", c.come(node, "a", "b"), "a", "b")
	c.wantIn(t, "somebody is there", c.come(event, "c"), "c")
}

func TestWhatIsLessNeededNeverTakesAllPlaces(t *testing.T) {
	c := newCrowd(8)
	c.wantIn(t, "a quarter is for events", c.come(event, "1", "2", "3"), "1", "2")
	c.wantIn(t, "half is for others, events among them", c.come(other, "4", "5", "6"), "4", "5")
	c.wantIn(t, "all are for nodes", c.come(node, "7", "8", "9", "10", "11"), "7", "8", "9", "10")
}

func TestTheMostNeededGoesFirstAndThenWhoCameFirst(t *testing.T) {
	c := newCrowd(4).with(4, node)
	c.come(event, "event")
	c.come(other, "rule 1", "rule 2")
	c.come(node, "node 1", "node 2")
	for _, next := range []string{"node 1", "node 2", "rule 1", "rule 2"} {
		c.wantIn(t, "a place is free", c.end(served, 0), next)
	}
	c.wantIn(t, "two nodes have left", append(c.end(served, 0), c.end(served, 0)...))
	c.wantIn(t, "a rule has left", c.end(served, 0), "event")
}

func TestOneOfEightPlacesIsForThoseBehind(t *testing.T) {
	c := newCrowd(1).with(1, other)
	for range 64 {
		c.come(node, "node")
		c.come(other, "rule")
		c.come(event, "event")
	}
	count := map[string]int{}
	for i := range 64 {
		for _, name := range c.end(served, 0) {
			count[name]++
			if behind := name != "node"; behind != (i%8 == 7) {
				t.Errorf("place %d went to a %s", i, name)
			}
		}
	}
	if count["node"] != 56 || count["rule"] != 7 || count["event"] != 1 {
		t.Errorf("64 places went to %v, want 56 nodes, 7 rules and 1 event", count)
	}
}

func TestARefusalHalvesThePlacesOnce(t *testing.T) {
	c := newCrowd(8).with(8, node)
	for range 8 { // all were sent before the first answer came
		c.end(refused, 0)
		c.wantLimits(t, "refused", 4, 2, 1)
	}
	for _, want := range [][]int{{2, 1, 1}, {1, 1, 1}, {1, 1, 1}} {
		c.with(1, node).end(refused, 0)
		c.wantLimits(t, "refused again", want...)
	}
}

func TestARefusalSpeaksForItsNeedAndThoseBehind(t *testing.T) {
	for n, want := range map[need][]int{node: {4, 2, 1}, other: {8, 2, 1}, event: {8, 4, 1}} {
		c := newCrowd(8).with(1, n)
		c.end(refused, time.Second)
		c.wantLimits(t, n.String(), want...)
		for k := range needs {
			if let := len(c.come(k, "x")) == 1; let != (k < n) {
				t.Errorf("after a refusal of a %s, a %s is let in: %v", n, k, let)
			}
		}
	}
}

func TestPlacesComeBackOneByOne(t *testing.T) {
	c := newCrowd(8).with(8, node)
	c.end(refused, 0)
	for range 7 {
		c.end(served, 0)
	}
	c.wantLimits(t, "served, but sent before the refusal", 4, 2, 1)
	for places := 4; places < 8; places++ {
		for range places {
			c.wantLimits(t, "growing", places, 2, 1)
			c.with(1, node).end(served, 0)
		}
	}
	for range 100 {
		c.with(1, event).end(served, 0)
	}
	c.wantLimits(t, "events are served, too", 8, 4, 2)
}

func TestAPauseIsWaitedFor(t *testing.T) {
	c := newCrowd(8).with(2, node)
	c.end(refused, time.Second)
	c.now = c.now.Add(time.Second / 2)
	c.end(refused, time.Second) // the later end counts
	c.come(node, "a")
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{{0, nil}, {time.Second / 2, nil}, {time.Second/2 - 1, nil}, {1, []string{"a"}}} {
		c.now = c.now.Add(step.after)
		c.wantIn(t, c.now.String(), c.look(), step.want...)
	}
}

func TestAShorterPauseDoesNotEndALongerOne(t *testing.T) {
	c := newCrowd(8).with(2, node)
	c.end(refused, 5*time.Second)
	c.end(refused, time.Second)
	c.now = c.now.Add(4 * time.Second)
	c.wantIn(t, "in the longer pause", c.come(node, "a"))
}

func TestWhoGivesUpIsNotLetIn(t *testing.T) {
	c := newCrowd(1).with(1, node)
	c.come(node, "a", "b")
	c.giveUp(c.waiting[node].Front().Value.(*pass))
	c.wantIn(t, "a has gone", c.end(served, 0), "b")
}
