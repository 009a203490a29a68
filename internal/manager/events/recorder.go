package events

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"math/bits"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// remembered is how many events can become a series if they happen again.
	remembered = 1024

	// An event that happens again within seriesGap belongs to the same series. Its count is
	// written when it has doubled, and what that leaves out every seriesRest.
	seriesGap  = 6 * time.Minute
	seriesRest = time.Minute
)

// retries are for an API server that does not answer: a minute in all.
var retries = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7}

// scribe writes events, and knows those that it has written. It is used by one goroutine.
type scribe struct {
	client eventsclient.EventsV1Interface
	seed   maphash.Seed
	told   *lru.Cache // tales by the hash of their story, which is long
	// behind are the tales whose count is not written yet.
	behind map[*tale]bool
}

// tale is an event that was written.
type tale struct {
	namespace, name string
	count           int32
	last            time.Time
}

// story is what makes two events the same.
type story struct {
	regarding, related                    types.UID
	name, eventType, reason, action, note string
}

func newScribe(client eventsclient.EventsV1Interface) *scribe {
	return &scribe{client: client, seed: maphash.MakeSeed(), told: lru.New(remembered), behind: map[*tale]bool{}}
}

// write writes an event, or that it happened again.
func (s *scribe) write(ctx context.Context, event *eventsv1.Event) error {
	key := maphash.Comparable(s.seed, storyOf(event))
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
	if err == nil || apierrors.IsAlreadyExists(err) { // by an earlier try, whose answer was lost
		s.told.Add(key, &tale{namespace: event.Namespace, name: event.Name, count: 1, last: now})
		return nil
	}
	return err
}

func (s *scribe) writeAgain(ctx context.Context, t *tale, now time.Time) error {
	t.count++
	t.last = now
	s.behind[t] = true
	if bits.OnesCount32(uint32(t.count)) != 1 { //nolint:gosec // it only grows
		return nil
	}
	return s.writeCount(ctx, t)
}

// catchUp writes the counts that are behind.
func (s *scribe) catchUp(ctx context.Context) {
	for t := range s.behind {
		if err := s.writeCount(ctx, t); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Info("How often an event happened was not written", "event", t.name, "error", err.Error())
		}
	}
}

func (s *scribe) writeCount(ctx context.Context, t *tale) error {
	delete(s.behind, t)
	patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: t.count, LastObservedTime: metav1.NewMicroTime(t.last)}})
	if err != nil {
		return err
	}
	return insist(ctx, func() error {
		_, err := s.client.Events(t.namespace).Patch(ctx, t.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// storyOf an event that tells of what was done has its words: they name the rules. Those of a
// warning may hold a time or a number, and differ each time.
func storyOf(event *eventsv1.Event) story {
	s := story{regarding: event.Regarding.UID, name: event.Regarding.Name, eventType: event.Type, reason: event.Reason, action: event.Action}
	if event.Related != nil {
		s.related = event.Related.UID
	}
	if event.Type == corev1.EventTypeNormal {
		s.note = event.Note
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
