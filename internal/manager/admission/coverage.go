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

// forgetAfter is how long the removal of a rule from the policy is recorded.
const forgetAfter = time.Hour

// Gap is why a policy does not cover a rule.
type Gap struct {
	// Reason is one of the reasons of the condition TaintedAtCreation, or Enforced of rules for pods.
	Reason string
	// Message describes the problem and how to fix it.
	Message string
}

// State is one reading of the policy.
type State struct {
	// Gap is why the policy covers no rule; nil if it is in force.
	Gap *Gap
	// Unread is true if the policy could not be read. Stored is then empty.
	Unread bool
	// Stored is the stored policy, and Wanted the policy that the rules require.
	Stored, Wanted admission.Compiled
	// Manual is true if an administrator applies the policy and the manager only compares it.
	Manual bool
	// Took is how long the API server took to store the policy; zero if this reading wrote nothing.
	Took time.Duration
}

// Coverage records which rules the policy contains, and since when. It is safe for concurrent use.
type Coverage struct {
	clock clock.PassiveClock
	// settle is how long a change of the policy may take to reach every API server.
	settle time.Duration
	// policy is the name of the policy, and without describes objects that are created without it.
	policy, without string

	mu       sync.Mutex
	onChange func()
	known    bool      // Observe was called
	first    time.Time // of the first successful read; zero before
	state    State
	in       map[string]entry
	out      map[string]time.Time // when the removal of a rule from the policy has settled
}

// entry is a rule's part of the policy.
type entry struct {
	text    admission.Text
	settled time.Time
	// found is true if the first read already had it.
	found bool
}

// New returns the coverage of the policy of this name. Messages include without, which describes objects that are created
// without the policy.
func New(clock clock.PassiveClock, settle time.Duration, policy, without string) *Coverage {
	return &Coverage{clock: clock, settle: settle, policy: policy, without: without, in: map[string]entry{}, out: map[string]time.Time{}}
}

// OnChange calls f, which must not block, whenever the result of Covers or Gone may have changed.
func (c *Coverage) OnChange(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onChange = f
}

// Observe records a reading of the policy.
func (c *Coverage) Observe(state State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state.Unread {
		state.Stored = c.state.Stored
	}
	changed := !c.known || c.state.differs(state)
	if c.state.Gap != nil && state.Gap == nil {
		clear(c.in) // in force again: each API server must see that, too
	}
	before := c.state.Stored
	c.known, c.state = true, state
	if !state.Unread {
		c.remember(before, state.Stored, state.Took)
	}
	if changed && c.onChange != nil {
		c.onChange()
	}
}

// compilations is the maximum number of compilations before a change is in force on an API server: the one in progress
// and that of the change, and one spare.
const compilations = 3

// remember records what was added to the policy and removed from it. An API server compiles the policy to store it, and
// again to enforce it, so the time to store it is an estimate of one compilation.
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

func (s State) differs(other State) bool {
	gapDiffers := (s.Gap == nil) != (other.Gap == nil) || s.Gap != nil && *s.Gap != *other.Gap
	return gapDiffers || s.Manual != other.Manual || !s.Stored.Equal(other.Stored) || !s.Wanted.Equal(other.Wanted)
}

// Covers returns why the policy does not cover the rule of this UID; a nil gap if it does. A wait that is not zero is
// the time until the result may change without an event. The result is not known before the first reading of the
// policy. If was is true, the previous leader has reported the rule as covered: then a part that the first reading
// already had counts as settled.
func (c *Coverage) Covers(uid types.UID, was bool) (gap *Gap, wait time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return nil, 0, false
	}
	if c.state.Gap != nil {
		return c.state.Gap, 0, true
	}
	if c.state.Wanted.LeavesOut(uid) {
		return &Gap{Reason: v1alpha1.ReasonTooLarge, Message: "the policy " + c.policy + " has no room for this rule after the older rules: " + c.without + "; use a shorter selector or fewer rules"}, 0, true
	}
	if gap := c.outdated(uid); gap != nil {
		return gap, 0, true
	}
	e, ok := c.in[admission.VariableOf(uid)]
	if !ok || !c.state.Wanted.Keeps(uid, c.state.Stored) {
		return &progressing, 0, true // not yet compiled or written
	}
	if wait := e.settled.Sub(c.clock.Now()); wait > 0 && (!was || !e.found) {
		return &progressing, wait, true
	}
	return nil, 0, true
}

// ApplyCommand is what an administrator runs to apply the policies if the manager does not write them.
const ApplyCommand = "kubectl readiness policy | kubectl apply -f -"

// outdated returns the gap of a rule that differs from the stored policy, if an administrator applies the policy; nil
// if the policy has this version of the rule, or the manager writes the policy.
func (c *Coverage) outdated(uid types.UID) *Gap {
	wanted, stored := c.state.Wanted.Covers(uid), c.state.Stored.Names(admission.VariableOf(uid))
	if !c.state.Manual || !wanted && !stored || c.state.Wanted.Keeps(uid, c.state.Stored) {
		return nil
	}
	difference, effect := "has another version of this rule", "the stored version applies"
	switch {
	case !wanted:
		difference, effect = "still has this rule, which is deleted or not enforced", "the manager removes what it adds"
	case c.state.Stored.Edited():
		difference = "was edited, or compiled by another version of Readygate or with another --latch-image"
	case !stored:
		difference, effect = "does not have this rule", c.without
	}
	return &Gap{Reason: v1alpha1.ReasonPolicyOutdated, Message: fmt.Sprintf("the MutatingAdmissionPolicy %s %s; an administrator must apply the policy: %s; until then %s",
		c.policy, difference, ApplyCommand, effect)}
}

var progressing = Gap{Reason: v1alpha1.ReasonProgressing, Message: "waiting until all API servers use the updated policy"}

// Gone reports whether no API server applies the rule anymore. If not, wait is the time until the result may change
// without an event; zero if an event must come first. A policy that cannot be read may still name the rule.
func (c *Coverage) Gone(uid types.UID) (gone bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Gap != nil && c.state.Gap.Reason == v1alpha1.ReasonAPIMissing {
		return true, 0
	}
	name := admission.VariableOf(uid)
	if c.first.IsZero() || c.state.Unread || c.state.Stored.Names(name) || c.state.Wanted.Names(name) {
		return false, 0
	}
	settled, ok := c.out[name]
	if !ok {
		settled = c.first.Add(c.settle)
	}
	wait = max(settled.Sub(c.clock.Now()), 0)
	return wait == 0, wait
}
