package events_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/readygate/readygate/internal/manager/events"
)

// slow is an API server that accepts one event per 5 ms.
type slow struct {
	eventsclient.EventsV1Interface
	eventsclient.EventInterface
	turn chan struct{}
}

func newSlow() *slow { return &slow{turn: make(chan struct{}, 1)} }

func (s *slow) Events(string) eventsclient.EventInterface { return s }

func (s *slow) Create(_ context.Context, e *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	s.turn <- struct{}{}
	time.Sleep(5 * time.Millisecond)
	<-s.turn
	return e, nil
}

// What a burst of one event per node costs in memory, two seconds after it, with a slow API server.
func BenchmarkBurst(b *testing.B) {
	broadcaster := func(ctx context.Context, api *slow) clientevents.EventRecorder {
		broadcaster := clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: api})
		_ = broadcaster.StartRecordingToSinkWithContext(ctx)
		return broadcaster.NewRecorder(scheme.Scheme, "test")
	}
	writer := func(ctx context.Context, api *slow) clientevents.EventRecorder {
		w := events.New(api, scheme.Scheme, func() bool { return false })
		go func() { _ = w.Start(ctx) }()
		return w.Recorder("test")
	}
	for _, size := range []int{5000, 15000} {
		for name, start := range map[string]func(context.Context, *slow) clientevents.EventRecorder{"client-go": broadcaster, "writer": writer} {
			b.Run(name+"/"+strconv.Itoa(size), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(float64(burst(b.Context(), start, size))/(1<<20), "MiB")
				}
			})
		}
	}
}

func burst(ctx context.Context, start func(context.Context, *slow) clientevents.EventRecorder, size int) int64 {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	before := inUse()
	recorder := start(ctx, newSlow())
	for i := range size {
		recorder.Eventf(node(strconv.Itoa(i)), node("rule"), corev1.EventTypeNormal, "TaintAdded", "AddTaint", "added taint %s for rule %s: condition %s is False", "readiness.k8s.io/NetworkReady=pending:NoSchedule", "rule", "projectcalico.org/CalicoReady")
	}
	time.Sleep(2 * time.Second)
	return inUse() - before
}

// inUse is the live heap and the stacks, in bytes.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far below
}
