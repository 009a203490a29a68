package events_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/readygate/readygate/internal/manager/events"
)

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// hall is a herald, and an API server that hears it.
type hall struct {
	*events.Herald
	api  *fake.Clientset
	busy atomic.Bool
}

func newHall() *hall {
	h := &hall{api: fake.NewClientset()}
	h.Herald = events.New(h.api.EventsV1(), scheme.Scheme, "crier", h.busy.Load)
	return h
}

// run lets the herald write in virtual time; the function tells it what.
func (h *hall) run(t *testing.T, tell func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Start(ctx) }()
	tell()
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (h *hall) tell(name string) {
	h.Eventf(node(name), node("rule"), corev1.EventTypeNormal, "Held", "Hold", "taint %s", "x")
}

func (h *hall) events(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := h.api.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// verbs are those of all writes so far.
func (h *hall) verbs() []string {
	var verbs []string
	for _, action := range h.api.Actions() {
		if action.GetVerb() != "list" {
			verbs = append(verbs, action.GetVerb())
		}
	}
	return verbs
}

func (h *hall) dropped(t *testing.T) float64 {
	t.Helper()
	metrics := make(chan prometheus.Metric, 1)
	h.Collect(metrics)
	var m dto.Metric
	if err := (<-metrics).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestAnEventSaysWhatHappenedToWhomAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.tell("n")
		told := time.Now()
		time.Sleep(time.Minute) // it waits, and its time stays
		h.run(t, func() {})
		events := h.events(t)
		if len(events) != 1 {
			t.Fatalf("got %v", events)
		}
		e := events[0]
		if e.Regarding.Name != "n" || e.Regarding.Kind != "Node" || e.Related == nil || e.Related.Name != "rule" || e.Namespace != "default" {
			t.Errorf("about %v, related %v, in %q", e.Regarding, e.Related, e.Namespace)
		}
		if e.Type != "Normal" || e.Reason != "Held" || e.Action != "Hold" || e.Note != "taint x" || e.ReportingController != "crier" || e.ReportingInstance == "" {
			t.Errorf("got %+v", e)
		}
		if !e.EventTime.Time.Equal(told) || e.Series != nil {
			t.Errorf("at %v, want %v; series %v", e.EventTime, told, e.Series)
		}
	})
}

func TestRecordersOfSeveralControllersShareOneMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.As("other").Eventf(node("n"), nil, corev1.EventTypeWarning, "Late", "Await", "%d%%", 7)
		h.run(t, func() {})
		events := h.events(t)
		if len(events) != 1 || events[0].ReportingController != "other" || !strings.HasPrefix(events[0].ReportingInstance, "other-") || events[0].Note != "7%" {
			t.Fatalf("got %+v", events)
		}
		h.api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(eventsv1.Resource("events"), "m", errors.New("refused"))
		})
		h.As("other").Eventf(node("m"), nil, corev1.EventTypeWarning, "Late", "Await", "late")
		h.run(t, func() {})
		if dropped := h.dropped(t); dropped != 1 {
			t.Errorf("%v dropped events are counted, want 1", dropped)
		}
	})
}

func TestWhatHappensAgainIsASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.run(t, func() {
			for range 9 {
				h.tell("n")
				h.tell("m")
				time.Sleep(time.Second)
			}
		})
		for _, e := range h.events(t) {
			if e.Series == nil || e.Series.Count != 8 { // counts are written as they double
				t.Errorf("series %v of %s, want 8", e.Series, e.Regarding.Name)
			}
		}
		if got := len(h.verbs()); got != 8 {
			t.Errorf("%d writes for 18 events, want 2 creations and 6 patches: %v", got, h.verbs())
		}
	})
}

func TestTheCountOfASeriesIsRightInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.run(t, func() {
			for range 7 {
				h.tell("n")
			}
			time.Sleep(time.Minute + time.Second)
		})
		if events := h.events(t); len(events) != 1 || events[0].Series == nil || events[0].Series.Count != 7 {
			t.Errorf("got %+v", events)
		}
		if want := []string{"create", "patch", "patch", "patch"}; !slices.Equal(h.verbs(), want) {
			t.Errorf("got %v, want %v", h.verbs(), want)
		}
	})
}

func TestWhatHasNotHappenedForLongIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.run(t, func() {
			h.tell("n")
			time.Sleep(7 * time.Minute)
			h.tell("n")
		})
		if want := []string{"create", "create"}; !slices.Equal(h.verbs(), want) {
			t.Errorf("got %v, want %v", h.verbs(), want)
		}
	})
}

// Several rules may change a node at one time, and one of them again another time.
func TestOtherWordsAreAnotherStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.run(t, func() {
			for _, words := range []string{"a", "a and b"} {
				h.Eventf(node("n"), node("rule"), corev1.EventTypeNormal, "Held", "Hold", "%s", words)
				h.Eventf(node("n"), node("rule"), corev1.EventTypeWarning, "Refused", "Write", "%s", words)
			}
		})
		notes := map[string]int{}
		for _, e := range h.events(t) {
			notes[e.Reason+": "+e.Note]++
		}
		if want := map[string]int{"Held: a": 1, "Held: a and b": 1, "Refused: a": 1}; !maps.Equal(notes, want) {
			t.Errorf("got %v, want %v", notes, want)
		}
	})
}

func TestAnEventWhoseAnswerWasLostIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewAlreadyExists(eventsv1.Resource("events"), "n")
		})
		h.run(t, func() { h.tell("n") })
		if h.dropped(t) != 0 {
			t.Errorf("%v dropped", h.dropped(t))
		}
	})
}

func TestASeriesThatHasExpiredIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.run(t, func() {
			h.tell("n")
			synctest.Wait()
			if err := h.api.Tracker().Delete(eventsv1.SchemeGroupVersion.WithResource("events"), "default", h.events(t)[0].Name); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			h.tell("n")
		})
		if events := h.events(t); len(events) != 1 || events[0].Series != nil {
			t.Errorf("got %v", events)
		}
	})
}

func TestAnAPIServerThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		fails := 3
		h.api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails--
			return fails >= 0, nil, errors.New("connection refused")
		})
		h.run(t, func() {
			h.tell("n")
			time.Sleep(time.Minute)
		})
		if len(h.events(t)) != 1 || h.dropped(t) != 0 {
			t.Errorf("%d events, %v dropped", len(h.events(t)), h.dropped(t))
		}
	})
}

func TestWhatTheAPIServerRefusesIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.api.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
			refused := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event).Regarding.Name == "bad"
			return refused, nil, apierrors.NewForbidden(eventsv1.Resource("events"), "bad", errors.New("no"))
		})
		h.run(t, func() {
			h.tell("bad")
			h.tell("good")
		})
		if events := h.events(t); len(events) != 1 || events[0].Regarding.Name != "good" || h.dropped(t) != 1 {
			t.Errorf("%d events, %v dropped", len(events), h.dropped(t))
		}
	})
}

func TestASlowAPIServerGetsFewerEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(100 * time.Millisecond)
			return false, nil, nil
		})
		for i := range 100 {
			h.tell(strconv.Itoa(i))
		}
		h.run(t, func() { time.Sleep(3 * time.Second) }) // in virtual time
		if got := len(h.events(t)); got > 16 {
			t.Errorf("%d events were written in 3 s, want at most 16: half of the time is rest", got)
		}
	})
}

func TestTellingNeverWaits(t *testing.T) {
	h := newHall() // nobody writes
	for i := range 10_005 {
		h.tell(strconv.Itoa(i))
	}
	if got := h.dropped(t); got != 5 {
		t.Errorf("%v dropped, want 5", got)
	}
}

// Work that never ends must not make events get lost: the more of them wait, the less they do.
func TestManyEventsGiveWayForLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.busy.Store(true)
		for i := range 10_000 {
			h.tell(strconv.Itoa(i))
		}
		h.run(t, func() {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if written := len(h.api.Actions()); written < 20 {
				t.Errorf("%d events are written in two seconds though ten thousand wait", written)
			}
		})
	})
}

func TestAnEventGivesWayToWhatIsMoreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		h.busy.Store(true)
		h.run(t, func() {
			for i := range 5 {
				h.tell(strconv.Itoa(i))
			}
			time.Sleep(4*time.Second + time.Millisecond) // twice as long as one gives way
			synctest.Wait()
			if written := len(h.api.Actions()); written != 2 {
				t.Errorf("%d events are written while there is other work, must be 2: one in two seconds", written)
			}
			h.busy.Store(false)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if written := len(h.api.Actions()); written != 5 {
				t.Errorf("%d events are written when there is none, must be 5", written)
			}
		})
	})
}
