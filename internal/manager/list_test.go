package manager

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/readygate/readygate/internal/manager/leadership"
)

// An entry stays at least as long as a reconcile that began before the deletion of the rule may write a record of it.
func TestAnEntryStaysWhileAWriteMayStillHappen(t *testing.T) {
	for name, c := range map[string]struct {
		settle, request, set, least time.Duration
	}{
		"by default":         {5 * time.Second, time.Minute, 0, reconcileTimeout + time.Minute},
		"no settle time":     {0, time.Second, 0, reconcileTimeout + time.Second},
		"slow API servers":   {5 * time.Second, 5 * time.Minute, 0, reconcileTimeout + 5*time.Minute},
		"a long settle time": {time.Minute, time.Minute, 0, 12 * time.Minute},
		"set by a test":      {5 * time.Second, time.Minute, time.Second, time.Second},
	} {
		o := &Options{SettleTime: c.settle, RequestTimeout: c.request, ListRest: c.set}
		rest := o.listRetention(leadership.NewFence(clock.RealClock{}, leadership.RenewDeadline, o.RequestTimeout))
		if rest < c.least || c.set > 0 && rest != c.set {
			t.Errorf("%s: %v, want at least %v", name, rest, c.least)
		}
	}
}
