package herald

import (
	"context"
	"encoding/json"
	"errors"
	"math/bits"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/lru"
)

const (
	// remembered is how many events can become a series if they happen again.
	remembered = 4096

	// An event that happens again within seriesGap belongs to the same series. The count of a
	// long one is written when it has doubled, or after seriesRest.
	seriesGap  = 6 * time.Minute
	seriesRest = time.Minute
)

// retries are for an API server that does not answer: 2 minutes in all.
var retries = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Cap: 30 * time.Second, Steps: 8}

// scribe writes events, and knows those that it has written. It is used by one goroutine.
type scribe struct {
	client eventsclient.EventsV1Interface
	told   *lru.Cache
}

// tale is an event that was written.
type tale struct {
	namespace, name string
	count           int32
	last, written   time.Time
}

// story is what makes two events the same.
type story struct {
	regarding, related              types.UID
	name, eventType, reason, action string
}

func newScribe(client eventsclient.EventsV1Interface) *scribe {
	return &scribe{client: client, told: lru.New(remembered)}
}

// write writes an event, or that it happened again.
func (s *scribe) write(ctx context.Context, event *eventsv1.Event) error {
	key := storyOf(event)
	now := event.EventTime.Time
	if known, ok := s.told.Get(key); ok && now.Sub(known.(*tale).last) < seriesGap {
		err := s.writeAgain(ctx, known.(*tale), now)
		if !apierrors.IsNotFound(err) { // else it has expired
			return err
		}
	}
	err := insist(ctx, func() error {
		_, err := s.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
		return err
	})
	if err == nil {
		s.told.Add(key, &tale{namespace: event.Namespace, name: event.Name, count: 1, last: now, written: now})
	}
	return err
}

func (s *scribe) writeAgain(ctx context.Context, t *tale, now time.Time) error {
	t.count++
	t.last = now
	if bits.OnesCount32(uint32(t.count)) != 1 && now.Sub(t.written) < seriesRest { //nolint:gosec // it only grows
		return nil
	}
	patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: t.count, LastObservedTime: metav1.NewMicroTime(now)}})
	if err != nil {
		return err
	}
	t.written = now
	return insist(ctx, func() error {
		_, err := s.client.Events(t.namespace).Patch(ctx, t.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func storyOf(event *eventsv1.Event) story {
	s := story{regarding: event.Regarding.UID, name: event.Regarding.Name, eventType: event.Type, reason: event.Reason, action: event.Action}
	if event.Related != nil {
		s.related = event.Related.UID
	}
	return s
}

// insist tries again while the API server does not answer. What it refuses is refused.
func insist(ctx context.Context, write func() error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, retries, func(context.Context) (bool, error) {
		last = write()
		var answer apierrors.APIStatus
		return last == nil, only(errors.As(last, &answer), last)
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// only is the error if the condition holds.
func only(holds bool, err error) error {
	if holds {
		return err
	}
	return nil
}
