package podrule

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/agents"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func lease(renewed time.Time, version, report string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: agents.Name("n1"), ResourceVersion: version, Annotations: map[string]string{agents.ReportAnnotation: report}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

// The watcher decides whether an agent is live by its own clock.
func TestAnAgentIsAliveWhileItsLeaseChanges(t *testing.T) {
	var w watcher
	behind := noon.Add(-9 * time.Minute) // the clock of the agent
	see := func(want bool, now time.Time, renewed time.Time, what string) {
		t.Helper()
		if _, alive := w.See(lease(renewed, renewed.String(), ""), now); alive != want {
			t.Errorf("%s: alive is %v", what, alive)
		}
	}
	see(true, noon, behind, "when it is first seen")
	see(true, noon.Add(59*time.Second), behind, "a while after that")
	see(false, noon.Add(61*time.Second), behind, "when it has not changed for long")
	see(true, noon.Add(70*time.Second), behind.Add(time.Minute), "when it has changed")
	see(true, noon.Add(time.Hour), behind.Add(time.Hour), "much later, as it goes on")
	see(false, noon.Add(2*time.Hour), behind.Add(time.Hour), "when it has ended")
}

func TestOldLeaseDoesNotCountAsAlive(t *testing.T) {
	var w watcher
	if _, alive := w.See(lease(noon.Add(-time.Hour), "1", ""), noon); alive {
		t.Error("an agent with an old lease is live")
	}
}

// A report is read once for each version of its lease.
func TestReportIsReadOncePerVersionOfItsLease(t *testing.T) {
	var w watcher
	w.See(lease(noon, "1", `{"version":"a"}`), noon)
	if got, _ := w.See(lease(noon, "1", `{"version":"b"}`), noon); got.Version != "a" {
		t.Errorf("the same lease is read again: %+v", got)
	}
	if got, _ := w.See(lease(noon, "2", `{"version":"b"}`), noon); got.Version != "b" {
		t.Errorf("a new one is not: %+v", got)
	}
}
