package admission

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// forgetAfter is when it no longer matters that a rule was once in the policy.
const forgetAfter = time.Hour

// Gap is why a policy does not cover a rule.
type Gap struct {
	// Reason is one of the reasons of the condition TaintedAtCreation, or Enforced of rules for pods.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

// Sight is the policy as it was seen.
type Sight struct {
	// Gap is why the policy covers no rule; nil if it is in force.
	Gap *Gap
	// Unread says that the policy could not be read: Stored is not known then.
	Unread bool
	// Stored is what the policy says, and Wanted what the rules ask for.
	Stored, Wanted admission.Compiled
	// Manual is set where an administrator applies the policy and the manager only compares it.
	Manual bool
	// Took is how long the API server took to store the policy; zero if it was found so.
	Took time.Duration
}

// Coverage is what is known of the policy. It is safe for concurrent use.
type Coverage struct {
	clock clock.PassiveClock
	// settle is how long a change of the policy may take to reach every API server.
	settle time.Duration
	// policy is the name of the policy, and without describes the objects of a rule that it does not
	// cover.
	policy, without string

	mu       sync.Mutex
	onChange func()
	known    bool      // there was a sight
	first    time.Time // when the policy was first read; zero if never
	sight    Sight
	in       map[string]entry
	out      map[string]time.Time // when it has settled that a rule is out of the policy
}

// entry is a rule's part of the policy.
type entry struct {
	text    admission.Text
	settled time.Time
	// found says that it was there already when the policy was first read.
	found bool
}

// New makes an empty memory of the policy of this name. Messages include without: how objects are
// created that the policy does not cover.
func New(clock clock.PassiveClock, settle time.Duration, policy, without string) *Coverage {
	return &Coverage{clock: clock, settle: settle, policy: policy, without: without, in: map[string]entry{}, out: map[string]time.Time{}}
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
	if sight.Unread {
		sight.Stored = c.sight.Stored
	}
	changed := !c.known || c.sight.differs(sight)
	if c.sight.Gap != nil && sight.Gap == nil {
		clear(c.in) // in force again: that too takes a while to be seen everywhere
	}
	before := c.sight.Stored
	c.known, c.sight = true, sight
	if !sight.Unread {
		c.remember(before, sight.Stored, sight.Took)
	}
	if changed && c.onChange != nil {
		c.onChange()
	}
}

// compilations is how often an API server may have to compile the policy before a change is
// in force: what it is at, and then ours. One more is spare.
const compilations = 3

// remember notes what came into the policy and what went out of it. An API server compiles
// the policy as it stores it, and again to put it in force: how long it took tells how long
// it may take.
func (c *Coverage) remember(before, stored admission.Compiled, took time.Duration) {
	now, isFirst := c.clock.Now(), c.first.IsZero()
	if isFirst {
		c.first = now
	}
	settled := now.Add(c.settle + compilations*took)
	for _, name := range before.Variables() {
		if !stored.Names(name) {
			c.out[name] = settled
		}
	}
	for name := range c.out {
		if stored.Names(name) || now.Sub(c.out[name]) > forgetAfter {
			delete(c.out, name)
		}
	}
	was := c.in
	c.in = map[string]entry{}
	for name, text := range stored.Texts() {
		known, ok := was[name]
		if !ok || known.text != text {
			known = entry{text: text, settled: settled, found: isFirst}
		}
		c.in[name] = known
	}
}

func (s Sight) differs(other Sight) bool {
	gapDiffers := (s.Gap == nil) != (other.Gap == nil) || s.Gap != nil && *s.Gap != *other.Gap
	return gapDiffers || s.Manual != other.Manual || !s.Stored.Equal(other.Stored) || !s.Wanted.Equal(other.Wanted)
}

// Covers says why the policy does not cover the rule of this UID; nil if it does.
// Where time alone can change the answer, wait says when to ask again. It is not known before
// the policy was first seen. Whoever led before may have waited already: was says that the
// rule was covered then, which holds on if its part of the policy was found unchanged.
func (c *Coverage) Covers(uid types.UID, was bool) (gap *Gap, wait time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return nil, 0, false
	}
	if c.sight.Gap != nil {
		return c.sight.Gap, 0, true
	}
	if c.sight.Wanted.LeavesOut(uid) {
		return &Gap{Reason: v1alpha1.ReasonTooLarge, Message: "the rule does not fit into the policy " + c.policy + " beside older rules: " + c.without + "; use a shorter selector or fewer rules"}, 0, true
	}
	if gap := c.outdated(uid); gap != nil {
		return gap, 0, true
	}
	e, ok := c.in[admission.VariableOf(uid)]
	if !ok || !c.sight.Wanted.Keeps(uid, c.sight.Stored) {
		return &progressing, 0, true // about to be compiled or written
	}
	if wait := e.settled.Sub(c.clock.Now()); wait > 0 && (!was || !e.found) {
		return &progressing, wait, true
	}
	return nil, 0, true
}

// ApplyCommand is what an administrator runs to apply the policies where the manager does not write them.
const ApplyCommand = "kubectl readiness policy | kubectl apply -f -"

// outdated is the gap of a rule that differs from the stored policy, where an administrator applies
// the policy; nil if the policy has the rule as it is, or the manager writes the policy.
func (c *Coverage) outdated(uid types.UID) *Gap {
	wanted, stored := c.sight.Wanted.Covers(uid), c.sight.Stored.Names(admission.VariableOf(uid))
	if !c.sight.Manual || !wanted && !stored || c.sight.Wanted.Keeps(uid, c.sight.Stored) {
		return nil
	}
	difference, effect := "has another version of this rule", "the stored policy applies as it is"
	switch {
	case !wanted:
		difference, effect = "still has this rule, which is deleted or not enforced", "the manager removes what it adds"
	case c.sight.Stored.Edited():
		difference = "was edited, or compiled by another version of Readygate or with another --latch-image"
	case !stored:
		difference, effect = "does not have this rule", c.without
	}
	return &Gap{Reason: v1alpha1.ReasonPolicyOutdated, Message: fmt.Sprintf("the MutatingAdmissionPolicy %s %s; an administrator must apply it: %s; until then %s",
		c.policy, difference, ApplyCommand, effect)}
}

var progressing = Gap{Reason: v1alpha1.ReasonProgressing, Message: "the policy was written a moment ago, and some API server may not have seen it yet: wait"}

// Gone reports whether no API server does what the rule asks for any more. If not, wait is
// when to ask again; zero if something has to change before. A policy that cannot be read or
// relied on may still name the rule.
func (c *Coverage) Gone(uid types.UID) (gone bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sight.Gap != nil && c.sight.Gap.Reason == v1alpha1.ReasonAPIMissing {
		return true, 0
	}
	name := admission.VariableOf(uid)
	if c.first.IsZero() || c.sight.Unread || c.sight.Stored.Names(name) || c.sight.Wanted.Names(name) {
		return false, 0
	}
	settled, ok := c.out[name]
	if !ok {
		settled = c.first.Add(c.settle)
	}
	wait = max(settled.Sub(c.clock.Now()), 0)
	return wait == 0, wait
}
