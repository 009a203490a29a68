// Package coverage remembers what the births policy says of each rule and since when, for
// those who say or decide something because of it. It reads and writes nothing itself.
package coverage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/policy"
)

// forgetAfter is when it no longer matters that a rule was once in the policy.
const forgetAfter = time.Hour

// Gap is why nodes are not born with a rule's taint.
type Gap struct {
	// Reason is one of the reasons of the condition BirthsCovered.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

// Sight is the births policy as it was seen.
type Sight struct {
	// Gap is why the policy covers no rule; nil if it is in force.
	Gap *Gap
	// Stored is what the policy says, and Wanted what the rules ask for.
	Stored, Wanted policy.Births
}

// Coverage is what is known of the policy. It is safe for concurrent use.
type Coverage struct {
	clock clock.PassiveClock
	// settle is how long a change of the policy may take to reach every API server.
	settle time.Duration

	mu       sync.Mutex
	onChange func()
	first    time.Time // of all sights; zero if there was none
	sight    Sight
	in       map[string]entry
	out      map[string]time.Time
}

// entry is a rule's part of the policy.
type entry struct {
	text  string
	since time.Time
	// found says that it was there already when the policy was first seen.
	found bool
}

// New makes an empty memory.
func New(clock clock.PassiveClock, settle time.Duration) *Coverage {
	return &Coverage{clock: clock, settle: settle, in: map[string]entry{}, out: map[string]time.Time{}}
}

// OnChange calls f, which must not block, whenever an answer may have changed.
func (c *Coverage) OnChange(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onChange = f
}

// Saw remembers a sight of the policy.
func (c *Coverage) Saw(sight Sight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, isFirst := c.clock.Now(), c.first.IsZero()
	if isFirst {
		c.first = now
	}
	changed := isFirst || c.sight.differs(sight)
	if c.sight.Gap != nil && sight.Gap == nil {
		clear(c.in) // in force again: that too takes a while to be seen everywhere
	}
	c.sight = sight
	texts := sight.Stored.Texts()
	for name := range c.in {
		if _, ok := texts[name]; !ok {
			delete(c.in, name)
			c.out[name] = now
		}
	}
	for name, text := range texts {
		delete(c.out, name)
		if known, ok := c.in[name]; !ok || known.text != text {
			c.in[name] = entry{text: text, since: now, found: isFirst}
		}
	}
	for name, since := range c.out {
		if now.Sub(since) > forgetAfter {
			delete(c.out, name)
		}
	}
	if changed && c.onChange != nil {
		c.onChange()
	}
}

func (s Sight) differs(other Sight) bool {
	gapDiffers := (s.Gap == nil) != (other.Gap == nil) || s.Gap != nil && *s.Gap != *other.Gap
	return gapDiffers || !s.Stored.Equal(other.Stored) || !s.Wanted.Equal(other.Wanted)
}

// Births says why nodes are not born with the taint of the rule of this UID; nil if they are.
// Where time alone can change the answer, wait says when to ask again. It is not known before
// the policy was first seen. Whoever led before may have waited already: was says that the
// rule was covered then, which holds on if its part of the policy was found unchanged.
func (c *Coverage) Births(uid types.UID, was bool) (gap *Gap, wait time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first.IsZero() {
		return nil, 0, false
	}
	if c.sight.Gap != nil {
		return c.sight.Gap, 0, true
	}
	if c.sight.Wanted.LeavesOut(uid) {
		return &tooLarge, 0, true
	}
	e, ok := c.in[policy.VariableOf(uid)]
	if !ok || !c.sight.Wanted.Keeps(uid, c.sight.Stored) {
		return &settling, 0, true // about to be compiled or written
	}
	if wait := c.settle - c.clock.Since(e.since); wait > 0 && (!was || !e.found) {
		return &settling, wait, true
	}
	return nil, 0, true
}

var (
	settling = Gap{Reason: v1alpha1.ReasonSettling, Message: "the policy was written a moment ago, and some API server may not have seen it yet: wait"}
	tooLarge = Gap{Reason: v1alpha1.ReasonTooLarge, Message: "the rule does not fit into the policy " + policy.BirthsName +
		" beside older rules: nodes get the taint a moment after they are created; use a shorter selector or fewer rules, or --register-with-taints on their kubelets"}
)

// Gone says whether no API server puts the rule's taint on nodes any more. If not, wait is
// when to ask again; zero if something has to change before.
func (c *Coverage) Gone(uid types.UID) (gone bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first.IsZero() {
		return false, 0
	}
	if c.sight.Gap != nil && !c.sight.Gap.mayApply() {
		return true, 0
	}
	name := policy.VariableOf(uid)
	if _, ok := c.in[name]; ok || c.sight.Wanted.Covers(uid) { // in it, or about to be
		return false, 0
	}
	since, ok := c.out[name]
	if !ok {
		since = c.first
	}
	wait = c.settle - c.clock.Since(since)
	return wait <= 0, max(wait, 0)
}

// mayApply says that the policy is there and may put taints on nodes, in spite of the gap.
func (g *Gap) mayApply() bool {
	switch g.Reason {
	case v1alpha1.ReasonAPIMissing, v1alpha1.ReasonPolicyMissing, v1alpha1.ReasonPolicyForeign:
		return false
	default:
		return true
	}
}
