package leadership

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

func lease(namespace, holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.LeaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: renewed},
		},
	}
}

func testLock(objs ...*coordinationv1.Lease) (*Lock, *fake.Clientset, *testclock.FakeClock) {
	clock, client := testclock.NewFakeClock(time.Unix(1e9, 0)), fake.NewClientset()
	for _, obj := range objs {
		_ = client.Tracker().Add(obj)
	}
	return &Lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "own", Name: v1alpha1.LeaseName}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		},
		peers: &peerLeases{client: client.CoordinationV1(), namespaces: []string{"other"}, clock: clock},
		Fence: NewFence(clock, RenewDeadline, DefaultRequestTimeout),
	}, client, clock
}

var mine = resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}

// Another leader is live while its lease changes. Its clock does not matter.
func TestAnotherLeaderIsAliveWhileItsLeaseChanges(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	for i := range 3 {
		if err := lock.Create(t.Context(), mine); err == nil || !strings.Contains(err.Error(), "them (lease other/") {
			t.Fatalf("acquired while a peer leads: %v", err)
		}
		if err := lock.Settled(); err == nil || !strings.Contains(err.Error(), "them") {
			t.Errorf("settled: %v", err)
		}
		clock.Step(10 * time.Second)
		if _, err := client.CoordinationV1().Leases("other").Update(t.Context(), lease("other", "them", time.Unix(int64(i+1), 0)), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_ = lock.Create(t.Context(), mine) // observes the last renewal
	clock.Step(16 * time.Second)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Errorf("not acquired after the lease of the peer expired: %v", err)
	}
	if err := lock.Settled(); err != nil {
		t.Errorf("the leader is not settled: %v", err)
	}
}

// A standby that waited for a peer is ready while another replica leads and renews the lease.
func TestAStandbyIsSettledWhileALeaderRenews(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	if err := lock.Create(t.Context(), mine); err == nil {
		t.Fatal("acquired while a peer leads")
	}
	own := lease("own", "twin", time.Unix(1, 0))
	if err := client.Tracker().Add(own); err != nil {
		t.Fatal(err)
	}
	look := func(renewed int64) error {
		t.Helper()
		if err := client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease("own", "twin", time.Unix(renewed, 0)), "own"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		return lock.Settled()
	}
	if err := look(1); err == nil {
		t.Error("settled by a lease that was seen once")
	}
	if err := look(2); err != nil {
		t.Errorf("not settled, although the twin leads: %v", err)
	}
	clock.Step(time.Minute)
	if err := look(2); err == nil {
		t.Error("settled by a lease that is not renewed")
	}
}

// Without leader election, the lock in memory also waits for peers.
func TestMemoryLockWaitsForOtherLeaders(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	lock.Interface = &memoryLock{identity: "me"}
	if _, _, err := lock.Get(t.Context()); err == nil {
		t.Error("there is a record before one was written")
	}
	if err := lock.Create(t.Context(), mine); err == nil {
		t.Error("acquired while a peer leads")
	}
	clock.Step(time.Minute)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Errorf("not acquired: %v", err)
	}
	if err := lock.Settled(); err != nil {
		t.Errorf("not settled: %v", err)
	}
	if list, err := client.CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("a lease was written: %v %v", list, err)
	}
}

func TestReleasedLeaseOfAPeerIsIgnored(t *testing.T) {
	lock, _, _ := testLock(lease("other", "", time.Unix(0, 0)))
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Error(err)
	}
}

// The fence is open for a while after each successful renewal, and a failed renewal does not open it.
func TestEachRenewalOpensTheFence(t *testing.T) {
	lock, client, clock := testLock()
	want := func(what string, holds bool) {
		t.Helper()
		if lock.Fence.Open() != holds {
			t.Errorf("%s: the fence is open: %v", what, !holds)
		}
	}
	want("before", false)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	want("acquired", true)
	clock.Step(RenewDeadline - time.Second)
	if err := lock.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	clock.Step(RenewDeadline - time.Second)
	want("renewed", true)
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("gone") })
	if err := lock.Update(t.Context(), mine); err == nil {
		t.Fatal("renewed, although the API server does not respond")
	}
	clock.Step(time.Second)
	want("not renewed", false)
	lock.Fence.Renew(clock.Now())
	_ = lock.Update(t.Context(), resourcelock.LeaderElectionRecord{})
	want("released", false)
}

// Writes of the holder of an unreleased lease may still take effect.
func TestAnUnreleasedLeaseMakesTheNextLeaderWait(t *testing.T) {
	for holder, late := range map[string]bool{"": false, "twin": true} {
		lock, _, clock := testLock(lease("own", holder, time.Unix(0, 0)))
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(LeaseDuration + time.Second)
		if err := lock.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		if until := lock.Fence.PredecessorUntil(); until.After(clock.Now()) != late {
			t.Errorf("after %q: waits for writes of the predecessor until %v, it is %v", holder, until, clock.Now())
		}
		before := lock.Fence.PredecessorUntil()
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Second)
		if err := lock.Update(t.Context(), mine); err != nil || !lock.Fence.PredecessorUntil().Equal(before) {
			t.Errorf("after %q: a renewal makes the manager wait again: %v", holder, err)
		}
	}
}

// Two managers in two namespaces acquire their own leases at the same moment. The one that observes the other lease
// after its write releases its own.
func TestLeaseIsReleasedIfAnotherLeaderAcquiresAtTheSameTime(t *testing.T) {
	lock, client, _ := testLock()
	create := func(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
		if err := client.Tracker().Add(lease("other", "them", time.Unix(0, 0))); err != nil {
			return err
		}
		return lock.Interface.Create(ctx, record)
	}
	if err := lock.write(t.Context(), mine, create); err == nil {
		t.Fatal("acquired while another leader holds its lease")
	}
	got, err := client.CoordinationV1().Leases("own").Get(t.Context(), v1alpha1.LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(got.Spec.HolderIdentity, ""); holder != "" || lock.held {
		t.Errorf("the lease is still held by %q", holder)
	}
}

// holderNow returns the holder of the lease.
func holderNow(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	got, err := client.CoordinationV1().Leases("own").Get(t.Context(), v1alpha1.LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(got.Spec.HolderIdentity, "")
}

// unanswered sends a write of the lock's process that gets no response.
func unanswered(t *testing.T, lock *Lock) {
	t.Helper()
	broken := lock.Fence.Wrap(roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://localhost", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.RoundTrip(req); err == nil || errors.Is(err, ErrFenced) { //nolint:bodyclose // there is no response
		t.Fatalf("the write got a response or was not sent: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The lease is released only if no write can still take effect.
func TestALeaseIsNotReleasedWhileAWriteIsInFlight(t *testing.T) {
	lock, client, clock := testLock()
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	unanswered(t, lock)
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil || holderNow(t, client) != "me" {
		t.Errorf("released (%v), the holder is %q, although a write may still take effect", err, holderNow(t, client))
	}
	if lock.Fence.Open() {
		t.Error("the fence is open after the attempt to release the lease")
	}
	clock.Step(2 * time.Minute)
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || holderNow(t, client) != "" {
		t.Errorf("not released, although no write can take effect anymore: %v", err)
	}
}

// A process that was suspended must not release the lease of the next leader.
func TestALeaseOfAnotherHolderIsNotReleased(t *testing.T) {
	lock, client, _ := testLock(lease("own", "twin", time.Unix(5, 0)))
	lock.held = true // as after a suspension
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil || holderNow(t, client) != "twin" {
		t.Errorf("the lease of twin was released: %v, the holder is %q", err, holderNow(t, client))
	}
}

// The previous holder still counts if the response to the manager's write was lost, or if the second check of peers
// failed.
func TestPreviousHolderIsKnownAfterAFailedRequest(t *testing.T) {
	for name, trouble := range map[string]func(*fake.Clientset){
		"the answer is lost": func(client *fake.Clientset) {
			once := false
			client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if once {
					return false, nil, nil
				}
				once = true
				update := action.(clienttesting.UpdateAction)
				if err := client.Tracker().Update(update.GetResource(), update.GetObject(), update.GetNamespace()); err != nil {
					return true, nil, err
				}
				return true, nil, errors.New("timeout")
			})
		},
		"the second look fails": func(client *fake.Clientset) {
			looks := 0
			client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				looks++
				if looks == 2 {
					return true, nil, errors.New("overloaded")
				}
				return false, nil, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			lock, client, clock := testLock(lease("own", "twin", time.Unix(0, 0)))
			trouble(client)
			var err error
			for range 3 {
				if _, _, err = lock.Get(t.Context()); err != nil {
					t.Fatal(err)
				}
				clock.Step(LeaseDuration + time.Second)
				if err = lock.Update(t.Context(), mine); err == nil {
					break
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if until := lock.Fence.PredecessorUntil(); !until.After(clock.Now()) {
				t.Errorf("waits for writes of the predecessor until %v, it is %v", until, clock.Now())
			}
		})
	}
}

// A lease in a namespace that is no peer neither blocks, nor makes the manager wait for late writes.
func TestALeaseOutsideOfThePeersIsIgnored(t *testing.T) {
	lock, _, clock := testLock(lease("tenant", "them", time.Unix(1e9, 0)))
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if until := lock.Fence.PredecessorUntil(); until.After(clock.Now()) {
		t.Errorf("waits for writes of the predecessor until %v", until)
	}
}

// The namespace of a lease is reported once the lease was renewed, until the manager leads.
func TestALockReportsTheNamespaceItWaitsFor(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	for renewed, want := range []string{"", "other"} {
		if err := client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease("other", "them", time.Unix(int64(renewed), 0)), "other"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Create(t.Context(), mine); err == nil {
			t.Fatal("acquired beside a lease that may be live")
		}
		if got := lock.WaitingIn(); got != want {
			t.Errorf("after %d renewals it waits for %q, want %q", renewed, got, want)
		}
	}
	clock.Step(maxLeaseDuration)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if got := lock.WaitingIn(); got != "" {
		t.Errorf("it leads and waits for %q", got)
	}
}

// A peer that did not release its lease counts as a predecessor for the unreleasedWindow.
func TestAnUnreleasedLeaseOfAPeerMakesTheLeaderWait(t *testing.T) {
	for age, unreleased := range map[time.Duration]bool{time.Minute: true, time.Hour: false} {
		lock, _, clock := testLock(lease("other", "them", time.Unix(1e9, 0).Add(-age)))
		_ = lock.Create(t.Context(), mine) // the peer may be live
		clock.Step(maxLeaseDuration)
		if err := lock.Create(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		if until := lock.Fence.PredecessorUntil(); until.After(clock.Now()) != unreleased {
			t.Errorf("%v after the last renewal: waits for writes of the predecessor until %v, it is %v", age, until, clock.Now())
		}
	}
}
