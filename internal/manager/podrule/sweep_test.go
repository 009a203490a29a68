package podrule

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/manager/admission"
)

// Each sweep lists all pods of the cluster. A failed sweep must not be repeated at the rate of reconciles.
func TestAFailingSweepIsRepeatedAfterAGrowingPause(t *testing.T) {
	s, failure := newSweeps(), errors.New("forbidden")
	exists := func(types.UID) bool { return true }
	start := time.Unix(1e9, 0)
	sweeps := 0
	for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(100 * time.Millisecond) {
		ended, again, err := s.result("a", now)
		if ended && (!errors.Is(err, failure) || again <= 0) {
			t.Fatalf("error %v, again in %v", err, again)
		}
		select {
		case <-s.wake:
			sweeps++
			s.end(s.begin(), exists, failure, now)
		default:
		}
	}
	if sweeps < 5 || sweeps > 12 {
		t.Errorf("%d sweeps in 10 minutes", sweeps)
	}
	now := start.Add(time.Hour)
	if ended, _, err := s.result("a", now); ended || err != nil {
		t.Fatalf("no sweep is requested after the pause: %v", err)
	}
	s.end(s.begin(), exists, nil, now)
	if ended, _, err := s.result("a", now); !ended || err != nil {
		t.Errorf("after a sweep that succeeded: %v, %v", ended, err)
	}
	if _, _, err := s.result("b", now); err != nil || len(s.begin()) != 1 {
		t.Errorf("another rule cannot request a sweep: %v", err)
	}
}

// In manual mode a deleted rule may stay in the policy until an administrator applies it.
func TestASweepDoesNotWaitForAnAdministrator(t *testing.T) {
	for manual, want := range map[bool]time.Duration{true: 0, false: maxDefer} {
		synctest.Test(t, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			now := metav1.Now()
			deleted := &v1alpha1.PodReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", DeletionTimestamp: &now, Finalizers: []string{v1alpha1.Finalizer}}}
			r := &Reconciler{
				Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(deleted).Build(),
				Manual: manual, Coverage: admission.New(clock.RealClock{}, 0, "policy", ""), // which has not read the policy
			}
			start := time.Now()
			r.awaitOtherDeletions(t.Context())
			if waited := time.Since(start); waited != want {
				t.Errorf("manual %v: waited for %v, want %v", manual, waited, want)
			}
		})
	}
}
