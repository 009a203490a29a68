package podrule_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Before an agent sets back what the manager opened because no rule asks for it, the agent reads the rules
// past its cache.
func TestSweptGateIsSetBackOnlyAfterALiveReadOfRules(t *testing.T) {
	for reason, want := range map[string]bool{v1alpha1.ReasonRuleDeleted: true, v1alpha1.ReasonNotSelected: true, v1alpha1.ReasonAllReady: false, "Programmed": false} {
		w := newWorld(t, rule("network"))
		w.pass(6 * time.Second)
		w.settle()
		w.forges(reason, "always "+reason)
		pod := w.subject.Pod.DeepCopy()
		w.step()
		if got := w.last.NeedsLiveRules(pod); got != want || w.last.Patch == nil {
			t.Errorf("%s: %v, the patch is %+v", reason, got, w.last.Patch)
		}
		live := newWorld(t)
		live.subject = w.subject
		live.subject.Pod = pod
		if live.step(); live.last.NeedsLiveRules(pod) != (live.last.Patch != nil) {
			t.Errorf("%s: without rules the patch is %+v", reason, live.last.Patch)
		}
	}
}
