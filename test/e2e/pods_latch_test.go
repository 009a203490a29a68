package e2e_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/test/e2e/lab"
)

const (
	// batchVar is the number of held pods that are created at once; 20 if it is not set.
	batchVar = "READYGATE_BENCH_BATCH"
	// heldPods is the number of held pods in all.
	heldPods = 1000
)

// The time from gate to latch of a thousand held pods, as make bench-pods prints it: from the request that
// opened the gate, as the API server received it, to the line that the latch logged as it opened, as the
// container runtime received it.
func TestTheTimeFromGateToLatch(t *testing.T) {
	if os.Getenv(benchVar) == "" {
		t.Skip("make bench-pods measures pods")
	}
	size, err := strconv.Atoi(os.Getenv(batchVar))
	if err != nil {
		size = 20
	}
	l, n := startOneShot(t)
	applyPodRule(t, l, "crowd", "  startHold: true\n"+reached, "crowd")
	var all []time.Duration
	touched := 0
	for len(all) < heldPods {
		times, touches := gateToLatch(t, l, n, size)
		slices.Sort(times)
		l.Step(t, fmt.Sprintf("%d pods: median %v, longest %v, keys were touched %d times", len(times), rounded(times[len(times)/2]), rounded(times[len(times)-1]), touches))
		all, touched = append(all, times...), touched+touches
	}
	slices.Sort(all)
	at := func(share float64) time.Duration { return rounded(all[int(math.Ceil(share*float64(len(all))))-1]) }
	t.Logf("%d held pods, %d at once, from gate to latch: median %v, p90 %v, p99 %v, p99.9 %v, longest %v; keys were touched %d times", len(all), size, at(.5), at(.9), at(.99), at(.999), at(1), touched)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// gateToLatch creates held pods, and returns how long each waited for its latch after its gate opened, and
// how many times their keys were touched.
func gateToLatch(t *testing.T, l *lab.Lab, n *lab.Node, size int) (times []time.Duration, touches int) {
	t.Helper()
	pods := gatedCrowd()
	pods.Spec.Replicas = ptr.To(int32(size))
	readyAfter(t, l, pods, "crowd", size, nil)
	opened := map[string]time.Time{}
	for _, r := range l.Requests(t, admission.PodgateUser) {
		if _, seen := opened[r.Name]; !seen && r.Resource == "pods" && r.Verb == "patch" {
			opened[r.Name] = r.At
		}
	}
	for _, pod := range podsOf(t, l, metav1.NamespaceDefault, "crowd") {
		times = append(times, latchOpened(t, n, &pod).Sub(opened[pod.Name]))
		key, _ := latchkey.Parse(pod.Annotations[podv1alpha1.LatchAnnotation])
		touches += key.Touches
	}
	disperse(t, l, "crowd")
	return times, touches
}

// latchOpened is when the latch of a pod logged that it opens.
func latchOpened(t *testing.T, n *lab.Node, pod *corev1.Pod) time.Time {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(n.Disk("/var/log/pods"), fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), podv1alpha1.LatchName, "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) { // 2026-01-02T15:04:05.999999999Z stdout F readygate-latch: open after 1s: …
		if at, text, _ := strings.Cut(line, " "); strings.Contains(text, "readygate-latch: open after ") {
			opened, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				t.Fatal(err)
			}
			return opened
		}
	}
	t.Fatalf("the latch of %s has not opened:\n%s", pod.Name, log)
	return time.Time{}
}
