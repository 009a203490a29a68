package leadership

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// A lease elsewhere that was seen once may be that of a dead controller: only one that changes
// makes us give up.
func TestOnlyALiveLeaderIsReportedAsPeer(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	var peers []string
	lock.onPeer = func(peer string) { peers = append(peers, peer) }
	for range 2 {
		if err := lock.Create(t.Context(), mine); err == nil {
			t.Fatal("acquired beside a lease that may live")
		}
		clock.Step(time.Second)
	}
	if len(peers) > 0 {
		t.Errorf("given up for a lease that nobody has renewed: %v", peers)
	}
	renewed := lease("other", "them", time.Unix(1, 0))
	if err := client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), renewed, "other"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Create(t.Context(), mine); err == nil || len(peers) != 1 || !strings.Contains(peers[0], "them (lease other/") {
		t.Errorf("not given up for a leader that lives: %v, %v", err, peers)
	}
}

// The lease is deleted at the end, unless somebody else has it by then.
func TestOnlyOurOwnLeaseIsRemoved(t *testing.T) {
	lock, client, _ := testLock()
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := lock.remove(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoordinationV1().Leases("own").Get(t.Context(), v1alpha1.LeaseName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the lease is still there: %v", err)
	}
	if err := lock.remove(t.Context(), "own"); err != nil {
		t.Errorf("a lease that is gone: %v", err)
	}
	if err := client.Tracker().Add(lease("own", "twin", time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	if err := lock.remove(t.Context(), "own"); err == nil || !strings.Contains(err.Error(), "acquired by twin") {
		t.Errorf("somebody else's lease: %v", err)
	}
}
