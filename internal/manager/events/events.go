package events

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/internal/manager/leadership"
)

const (
	// queueSize is the maximum number of events that wait to be written. Further events are dropped.
	queueSize = 10_000

	// maxDefer is how long an event is deferred while the manager is busy; less, the more events wait.
	maxDefer     = 2 * time.Second
	pollInterval = 10 * time.Millisecond

	// An event that repeats one of the last seriesSize events within seriesGap is a series: only its count is written.
	seriesSize = 1024
	seriesGap  = 6 * time.Minute
)

// retries are for an API server that does not respond: a minute in all.
var retries = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7}

// Writer writes events. It is a runnable of the manager and the collector of its metric.
type Writer struct {
	prometheus.Counter // dropped events

	client eventsclient.EventsV1Interface
	scheme *runtime.Scheme
	busy   func() bool
	queue  chan *eventsv1.Event
	series *lru.Cache // *series by identity; used by Start only
}

// New returns a writer. Events are deferred while busy returns true.
func New(client eventsclient.EventsV1Interface, scheme *runtime.Scheme, busy func() bool) *Writer {
	dropped := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "node_readiness_events_dropped_total",
		Help: "Events that were not written: too many waited, or the API server rejected them or did not respond.",
	})
	return &Writer{Counter: dropped, client: client, scheme: scheme, busy: busy, queue: make(chan *eventsv1.Event, queueSize), series: lru.New(seriesSize)}
}

// NeedLeaderElection reports that a standby writes events, too.
func (*Writer) NeedLeaderElection() bool { return false }

// Recorder returns a recorder with this reporting controller. It never blocks.
func (w *Writer) Recorder(controller string) events.EventRecorder {
	host, _ := os.Hostname()
	return recorder{Writer: w, controller: controller, instance: controller + "-" + host}
}

type recorder struct {
	*Writer
	controller, instance string
}

func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	now := time.Now()
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		log.Log.Error(err, "Event without an object", "reason", reason)
		return
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: util.GenerateEventName(about.Name, now.UnixNano()), Namespace: about.Namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: r.controller, ReportingInstance: r.instance,
		Regarding: *about,
		Type:      eventType, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
	}
	if event.Namespace == "" {
		event.Namespace = corev1.NamespaceDefault
	}
	if related != nil {
		event.Related, _ = reference.GetReference(r.scheme, related)
	}
	select {
	case r.queue <- event:
	default:
		r.Inc()
	}
}

// Start writes events until the context ends. The events that are still in the queue are lost.
func (w *Writer) Start(ctx context.Context) error {
	for {
		select {
		case event := <-w.queue:
			free := time.Duration(queueSize - len(w.queue))
			_ = wait.PollUntilContextTimeout(ctx, pollInterval, maxDefer*free/queueSize, true, func(context.Context) (bool, error) { return !w.busy(), nil })
			w.write(ctx, event)
		case <-ctx.Done():
			return nil
		}
	}
}

// write sends an event again while the API server does not respond.
func (w *Writer) write(ctx context.Context, event *eventsv1.Event) {
	var err error
	_ = wait.ExponentialBackoffWithContext(ctx, retries, func(context.Context) (bool, error) {
		var response apierrors.APIStatus
		err = w.send(ctx, event)
		return err == nil || errors.As(err, &response) || errors.Is(err, leadership.ErrFenced), nil
	})
	if err != nil && ctx.Err() == nil {
		w.Inc()
		log.FromContext(ctx).Info("Event not written", "regarding", event.Regarding.Name, "reason", event.Reason, "error", err.Error())
	}
}

// series is an event that the API server has.
type series struct {
	name  string
	count int32
	last  time.Time
}

func (w *Writer) send(ctx context.Context, event *eventsv1.Event) error {
	api, id := w.client.Events(event.Namespace), identityOf(event)
	if known, ok := w.series.Get(id); ok && event.EventTime.Sub(known.(*series).last) < seriesGap {
		s := known.(*series)
		patch := fmt.Appendf(nil, `{"series":{"count":%d,"lastObservedTime":%q}}`, s.count+1, event.EventTime.UTC().Format(metav1.RFC3339Micro))
		_, err := api.Patch(ctx, s.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			s.count, s.last = s.count+1, event.EventTime.Time
		}
		if !apierrors.IsNotFound(err) { // else it has expired
			return err
		}
	}
	_, err := api.Create(ctx, event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) { // by an earlier attempt whose response was lost
		w.series.Add(id, &series{name: event.Name, count: 1, last: event.EventTime.Time})
		return nil
	}
	return err
}

// identityOf is equal for events of one series. Warnings may contain a time or a number, so their note does not count.
func identityOf(event *eventsv1.Event) [8]string {
	related, note := types.UID(""), ""
	if event.Related != nil {
		related = event.Related.UID
	}
	if event.Type == corev1.EventTypeNormal {
		note = event.Note
	}
	return [8]string{string(event.Regarding.UID), event.Regarding.Name, string(related), event.ReportingController, event.Type, event.Reason, event.Action, note}
}
