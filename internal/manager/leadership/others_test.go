package leadership

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// observer is Others with a fake clock and a counter of published changes.
type observer struct {
	*Others
	clock   *testclock.FakeClock
	changes int
	version int
}

func newObserver() *observer {
	clock := testclock.NewFakeClock(time.Unix(1e9, 0))
	o := &observer{Others: NewOthers(clock, "own"), clock: clock}
	o.OnChange(func() { o.changes++ })
	return o
}

// poll observes that leases were renewed in these namespaces, one interval later.
func (o *observer) poll(renewed ...string) {
	o.clock.Step(pollInterval)
	o.version++
	versions := map[string]string{}
	for _, namespace := range renewed {
		versions[namespace] = strconv.Itoa(o.version)
	}
	o.observe(versions)
}

func (o *observer) message() string {
	if c := o.Condition(); c != nil {
		return c.Message
	}
	return ""
}

func TestALeaseIsShownWhileItIsRenewed(t *testing.T) {
	o := newObserver()
	o.poll("tenant")
	if o.Condition() != nil || o.Live() != 0 {
		t.Error("a lease that was seen once is shown as live")
	}
	o.poll("tenant")
	if !strings.Contains(o.message(), "in namespaces own, tenant;") || o.Live() != 1 || o.changes != 1 {
		t.Errorf("%d live, %d changes, %q", o.Live(), o.changes, o.message())
	}
	for range 10 { // it is not renewed anymore
		o.clock.Step(pollInterval)
		o.observe(map[string]string{"tenant": "2"})
	}
	if o.Condition() != nil || o.Live() != 0 || o.changes != 2 {
		t.Errorf("%d live, %d changes, %q", o.Live(), o.changes, o.message())
	}
}

// A tenant that creates, renews and deletes leases in many namespaces causes one change per
// publishInterval.
func TestLeasesThatComeAndGoCauseBoundedChanges(t *testing.T) {
	o := newObserver()
	start := o.clock.Now()
	for i := range 120 {
		o.poll("always", fmt.Sprintf("tenant-%d", i/2))
	}
	if limit := int(o.clock.Since(start)/publishInterval) + 1; o.changes > limit {
		t.Errorf("%d changes in %v, want at most %d", o.changes, o.clock.Since(start), limit)
	}
}

// The message is bounded, whatever tenants create.
func TestTheMessageIsBounded(t *testing.T) {
	o := newObserver()
	var namespaces []string
	for i := range maxLeases {
		namespaces = append(namespaces, fmt.Sprintf("%02d-%s", i, strings.Repeat("a", 60)))
	}
	o.poll(namespaces...)
	o.poll(namespaces...)
	if message := o.message(); len(message) > 1024 || !strings.Contains(message, "in namespaces 00-") || !strings.Contains(message, "and 96 more") {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

// Two managers that lead in two namespaces write the same message: otherwise each would overwrite the
// other's status.
func TestTwoManagersWriteTheSameMessage(t *testing.T) {
	a, b := newObserver(), newObserver()
	a.own, b.own = "a", "b"
	for range 2 {
		a.poll("b")
		b.poll("a")
	}
	if a.message() != b.message() || !strings.Contains(a.message(), "in namespaces a, b;") {
		t.Errorf("%q and %q", a.message(), b.message())
	}
}
