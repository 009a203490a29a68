package manager

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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

func testLock(objs ...*coordinationv1.Lease) (*exclusiveLock, *fake.Clientset, *testclock.FakeClock) {
	clock, client := testclock.NewFakeClock(time.Unix(1e9, 0)), fake.NewClientset()
	for _, obj := range objs {
		_ = client.Tracker().Add(obj)
	}
	return &exclusiveLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "own", Name: v1alpha1.LeaseName}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		},
		neighbours: &neighbours{leases: client.CoordinationV1(), own: "own", clock: clock},
	}, client, clock
}

var mine = resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}

// Whether another leader lives is told from its changes: its clock may be years off.
func TestAnotherLeaderIsAliveWhileItsLeaseChanges(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	for i := range 3 {
		if err := lock.Create(t.Context(), mine); err == nil || !strings.Contains(err.Error(), "them (lease other/") {
			t.Fatalf("acquired beside a live leader: %v", err)
		}
		if err := lock.settled(); err == nil || !strings.Contains(err.Error(), "them") {
			t.Errorf("settled: %v", err)
		}
		clock.Step(10 * time.Second)
		if _, err := client.CoordinationV1().Leases("other").Update(t.Context(), lease("other", "them", time.Unix(int64(i+1), 0)), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_ = lock.Create(t.Context(), mine) // the last sign of life
	clock.Step(16 * time.Second)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Errorf("not acquired after the other died: %v", err)
	}
	if err := lock.settled(); err != nil {
		t.Errorf("the leader is not settled: %v", err)
	}
}

// A standby that waited for another controller is ready when a manager of its own kind leads,
// and only while that one shows signs of life.
func TestAStandbyIsSettledWhileALeaderRenews(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	if err := lock.Create(t.Context(), mine); err == nil {
		t.Fatal("acquired beside a live leader")
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
		return lock.settled()
	}
	if err := look(1); err == nil {
		t.Error("settled by a lease that may be that of a dead one")
	}
	if err := look(2); err != nil {
		t.Errorf("not settled though the twin leads: %v", err)
	}
	clock.Step(time.Minute)
	if err := look(2); err == nil {
		t.Error("settled by a lease that nobody renews")
	}
}

// Without leader election the lock is one of this process's own, and waits all the same.
func TestALockOfItsOwnWaitsForOthers(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	lock.Interface, lock.neighbours.own = &memoryLock{identity: "me"}, ""
	if _, _, err := lock.Get(t.Context()); err == nil {
		t.Error("there is a record before one was written")
	}
	if err := lock.Create(t.Context(), mine); err == nil {
		t.Error("acquired beside a live leader")
	}
	clock.Step(time.Minute)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Errorf("not acquired: %v", err)
	}
	if err := lock.settled(); err != nil {
		t.Errorf("not settled: %v", err)
	}
	if list, err := client.CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("a lease was written: %v %v", list, err)
	}
}

func TestAReleasedLeaseElsewhereIsNoObstacle(t *testing.T) {
	lock, _, _ := testLock(lease("other", "", time.Unix(0, 0)))
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Error(err)
	}
}

// Two managers in two namespaces acquire their own leases in the same moment: who looks
// after writing and sees the other steps back.
func TestALeaderThatComesAtTheSameMomentMakesUsStepBack(t *testing.T) {
	lock, client, _ := testLock()
	create := func(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
		if err := client.Tracker().Add(lease("other", "them", time.Unix(0, 0))); err != nil {
			return err
		}
		return lock.Interface.Create(ctx, record)
	}
	if err := lock.write(t.Context(), mine, create); err == nil {
		t.Fatal("acquired beside another leader")
	}
	got, err := client.CoordinationV1().Leases("own").Get(t.Context(), v1alpha1.LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(got.Spec.HolderIdentity, ""); holder != "" || lock.held {
		t.Errorf("the lease is still held by %q", holder)
	}
}
