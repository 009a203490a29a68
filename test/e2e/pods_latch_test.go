package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/latchkey"
	"github.com/readygate/readygate/test/e2e/lab"
)

// batchesVar is how many crowds of held pods are measured one after the other; 10 if it is not set.
const batchesVar = "READYGATE_BENCH_BATCHES"

// How long a thousand held pods wait for their latch after their gate opened, as make bench-pods prints it.
// Both ends are the times at which a watch showed them, so the time until the kubelet reported the end of
// the latch is part of it.
func TestTheTimeFromGateToLatch(t *testing.T) {
	if os.Getenv(benchVar) == "" {
		t.Skip("pods are measured by make bench-pods")
	}
	batches, err := strconv.Atoi(os.Getenv(batchesVar))
	if err != nil {
		batches = 10
	}
	l, _ := startOneShot(t)
	applyPodRule(t, l, "crowd", "  startHold: true\n"+reached, "crowd")
	var all []time.Duration
	touched := 0
	for i := range batches {
		times, touches := gateToLatch(t, l)
		disperse(t, l, "crowd")
		slices.Sort(times)
		l.Step(t, fmt.Sprintf("batch %d of %d pods: median %v, longest %v, %d keys touched", i+1, len(times), rounded(times[len(times)/2]), rounded(times[len(times)-1]), touches))
		all, touched = append(all, times...), touched+touches
	}
	slices.Sort(all)
	at := func(share float64) time.Duration { return rounded(all[min(len(all)-1, int(share*float64(len(all))))]) }
	t.Logf("%d pods, from gate to latch: median %v, p90 %v, p99 %v, p99.9 %v, longest %v; %d keys were touched", len(all), at(.5), at(.9), at(.99), at(.999), at(1), touched)
	t.Logf("the twenty longest: %v", all[max(0, len(all)-20):])
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// gateToLatch creates a crowd of held pods, and returns how long each waited for its latch after its gate
// opened, and how many keys were touched.
func gateToLatch(t *testing.T, l *lab.Lab) (times []time.Duration, touched int) {
	t.Helper()
	events := podEvents(t, l, "crowd")
	defer events.Stop()
	deadline := time.NewTimer(10 * time.Minute)
	defer deadline.Stop()
	l.Create(t, gatedCrowd())
	opened, ended := map[types.UID]time.Time{}, map[types.UID]bool{}
	for len(ended) < crowd {
		select {
		case event, more := <-events.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !more || !ok {
				t.Fatalf("the watch ended: %+v", event)
			}
			if _, seen := opened[pod.UID]; !seen && gateOf(pod).Status == corev1.ConditionTrue {
				opened[pod.UID] = time.Now()
			}
			if event.Type == watch.Deleted || ended[pod.UID] || !latchEnded(pod) {
				continue
			}
			ended[pod.UID] = true
			times = append(times, time.Since(opened[pod.UID]))
			if key, _ := latchkey.Parse(pod.Annotations[podv1alpha1.LatchAnnotation]); key.Touches > 0 {
				touched++
			}
		case <-deadline.C:
			t.Fatalf("%d of %d latches have ended", len(ended), crowd)
		}
	}
	return times, touched
}

func latchEnded(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == podv1alpha1.LatchName && s.State.Terminated != nil
	})
}
