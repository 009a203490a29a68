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

// A lease of a peer that was seen once may be that of a dead controller: only a lease that changes stops the cleanup.
func TestOnlyALiveLeaderIsReportedAsPeer(t *testing.T) {
	lock, client, clock := testLock(lease("other", "them", time.Unix(0, 0)))
	var peers []string
	lock.onPeer = func(peer string) { peers = append(peers, peer) }
	for range 2 {
		if err := lock.Create(t.Context(), mine); err == nil {
			t.Fatal("acquired while the lease of a peer may be live")
		}
		clock.Step(time.Second)
	}
	if len(peers) > 0 {
		t.Errorf("stopped for a lease that is not renewed: %v", peers)
	}
	renewed := lease("other", "them", time.Unix(1, 0))
	if err := client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), renewed, "other"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Create(t.Context(), mine); err == nil || len(peers) != 1 || !strings.Contains(peers[0], "them (lease other/") {
		t.Errorf("not stopped for a live leader: %v, %v", err, peers)
	}
}

// The lease is deleted at the end, unless another manager has acquired it.
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
		t.Errorf("a lease that does not exist: %v", err)
	}
	if err := client.Tracker().Add(lease("own", "twin", time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	if err := lock.remove(t.Context(), "own"); err == nil || !strings.Contains(err.Error(), "acquired by twin") {
		t.Errorf("the lease of another manager: %v", err)
	}
}
