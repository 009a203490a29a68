package events

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// pending is how many events can wait to be written. Those that come then are lost, and counted.
	pending = 10_000

	// An event gives way to work that is more needed for at most courtesy, and for less the more
	// others wait behind it; it looks every glance.
	courtesy = 2 * time.Second
	glance   = 10 * time.Millisecond
)

// Herald is a recorder of events. It also is a collector of its metric.
type Herald struct {
	prometheus.Collector

	scheme           *runtime.Scheme
	controller, host string
	queue            chan *eventsv1.Event
	dropped          prometheus.Counter
	busy             func() bool
	scribe           *scribe
	last             atomic.Int64
}

var _ events.EventRecorder = &Herald{}

// New makes a herald that tells in the name of this controller. Busy says that there is work which
// is more needed than events: an event waits for its end, but not for long.
func New(client eventsclient.EventsV1Interface, scheme *runtime.Scheme, controller string, busy func() bool) *Herald {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	dropped := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "node_readiness_events_dropped_total",
		Help: "Events that were not written, because too many waited, or the API server refused them or did not answer.",
	})
	return &Herald{
		Collector:  dropped,
		scheme:     scheme,
		controller: controller,
		host:       host,
		queue:      make(chan *eventsv1.Event, pending),
		dropped:    dropped,
		busy:       busy,
		scribe:     newScribe(client),
	}
}

// As is a recorder with another reporting controller. It shares the queue, the rate and the metric.
func (h *Herald) As(controller string) events.EventRecorder { return recorder{h, controller} }

// recorder records events of one reporting controller.
type recorder struct {
	*Herald
	controller string
}

// Eventf records an event. It never blocks.
func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.record(r.controller, regarding, related, eventType, reason, action, fmt.Sprintf(note, args...))
}

// Eventf tells of something. It never waits.
func (h *Herald) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	h.As(h.controller).Eventf(regarding, related, eventType, reason, action, note, args...)
}

func (h *Herald) record(controller string, regarding, related runtime.Object, eventType, reason, action, note string) {
	event, err := h.event(controller, regarding, related, time.Now())
	if err != nil {
		log.Log.Error(err, "An event has no object that it is about", "reason", reason)
		return
	}
	event.Type, event.Reason, event.Action, event.Note = eventType, reason, action, note
	select {
	case h.queue <- event:
	default:
		h.dropped.Inc()
	}
}

// event is one about these objects; related may be nil.
func (h *Herald) event(controller string, regarding, related runtime.Object, now time.Time) (*eventsv1.Event, error) {
	about, err := reference.GetReference(h.scheme, regarding)
	if err != nil {
		return nil, err
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: util.GenerateEventName(about.Name, h.moment(now)), Namespace: namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: controller,
		ReportingInstance:   controller + "-" + h.host,
		Regarding:           *about,
	}
	if related != nil {
		event.Related, err = reference.GetReference(h.scheme, related)
	}
	return event, err
}

// moment is a time in nanoseconds that no other event has: it is part of their names.
func (h *Herald) moment(now time.Time) int64 {
	for {
		last := h.last.Load()
		next := max(now.UnixNano(), last+1)
		if h.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Start writes events until the context ends. What waits then is lost. After each it rests for as
// long as the write took: an API server that has much to do, and answers late, gets few, and one
// that is idle gets many.
func (h *Herald) Start(ctx context.Context) error {
	again := time.NewTicker(seriesRest)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			h.scribe.catchUp(ctx)
		case event := <-h.queue:
			h.giveWay(ctx)
			began := time.Now()
			h.write(ctx, event)
			rest(ctx, time.Since(began))
		case <-ctx.Done():
			return nil
		}
	}
}

// giveWay waits until there is nothing that is more needed, or it has waited long enough: work that
// never ends must not keep everybody from knowing what is done.
func (h *Herald) giveWay(ctx context.Context) {
	patience := courtesy * time.Duration(pending-len(h.queue)) / pending
	for waited := time.Duration(0); waited < patience && h.busy() && ctx.Err() == nil; waited += glance {
		rest(ctx, glance)
	}
}

func (h *Herald) write(ctx context.Context, event *eventsv1.Event) {
	if err := h.scribe.write(ctx, event); err != nil && ctx.Err() == nil {
		h.dropped.Inc()
		log.FromContext(ctx).Info("An event was not written", "about", event.Regarding.Name, "reason", event.Reason, "error", err.Error())
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// NeedLeaderElection says that a standby tells of things, too.
func (*Herald) NeedLeaderElection() bool { return false }
