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

// fixture is a writer with a fake API server.
type fixture struct {
	*events.Writer
	api  *fake.Clientset
	busy atomic.Bool
}

func newFixture() *fixture {
	f := &fixture{api: fake.NewClientset()}
	f.Writer = events.New(f.api.EventsV1(), scheme.Scheme, f.busy.Load)
	return f
}

// run runs the writer during the function, in virtual time.
func (f *fixture) run(t *testing.T, during func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Start(ctx) }()
	during()
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (f *fixture) record(name string) {
	f.Recorder("test").Eventf(node(name), node("rule"), corev1.EventTypeNormal, "Held", "Hold", "taint %s", "x")
}

func (f *fixture) events(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := f.api.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// verbs are those of all writes so far.
func (f *fixture) verbs() []string {
	var verbs []string
	for _, action := range f.api.Actions() {
		if action.GetVerb() != "list" {
			verbs = append(verbs, action.GetVerb())
		}
	}
	return verbs
}

func (f *fixture) dropped(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	if err := f.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// fail makes creations of events about the object return the error; empty: of all.
func (f *fixture) fail(about string, err func() error) {
	f.api.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		if about != "" && event.Regarding.Name != about {
			return false, nil, nil
		}
		failure := err()
		return failure != nil, nil, failure
	})
}

func TestAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.record("n")
		recorded := time.Now()
		time.Sleep(time.Minute) // it waits, and its time stays
		f.run(t, func() {})
		events := f.events(t)
		if len(events) != 1 {
			t.Fatalf("got %v", events)
		}
		e := events[0]
		if e.Regarding.Name != "n" || e.Regarding.Kind != "Node" || e.Related == nil || e.Related.Name != "rule" || e.Namespace != "default" {
			t.Errorf("about %v, related %v, in %q", e.Regarding, e.Related, e.Namespace)
		}
		if e.Type != "Normal" || e.Reason != "Held" || e.Action != "Hold" || e.Note != "taint x" || e.ReportingController != "test" || !strings.HasPrefix(e.ReportingInstance, "test-") {
			t.Errorf("got %+v", e)
		}
		if !e.EventTime.Time.Equal(recorded) || e.Series != nil {
			t.Errorf("at %v, want %v; series %v", e.EventTime, recorded, e.Series)
		}
	})
}

func TestARepeatedEventIsASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.run(t, func() {
			for range 9 {
				f.record("n")
				f.record("m")
				time.Sleep(time.Second)
			}
		})
		events := f.events(t)
		for _, e := range events {
			if e.Series == nil || e.Series.Count != 9 || time.Since(e.Series.LastObservedTime.Time) != time.Second {
				t.Errorf("series %v of %s, want 9", e.Series, e.Regarding.Name)
			}
		}
		if len(events) != 2 {
			t.Errorf("%d events, want 2", len(events))
		}
	})
}

func TestASeriesEndsAfterSixMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.run(t, func() {
			f.record("n")
			time.Sleep(7 * time.Minute)
			f.record("n")
		})
		if want := []string{"create", "create"}; !slices.Equal(f.verbs(), want) {
			t.Errorf("got %v, want %v", f.verbs(), want)
		}
	})
}

// Several rules may change a node at the same time, and one of them again another time.
func TestNormalEventsWithDifferentNotesAreNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.run(t, func() {
			for _, note := range []string{"a", "a and b"} {
				for eventType, reason := range map[string]string{corev1.EventTypeNormal: "Held", corev1.EventTypeWarning: "Refused"} {
					f.Recorder("test").Eventf(node("n"), node("rule"), eventType, reason, "Write", "%s", note)
					time.Sleep(time.Second) // names contain the time
				}
			}
		})
		notes := map[string]int{}
		for _, e := range f.events(t) {
			notes[e.Reason+": "+e.Note]++
		}
		if want := map[string]int{"Held: a": 1, "Held: a and b": 1, "Refused: a": 1}; !maps.Equal(notes, want) {
			t.Errorf("got %v, want %v", notes, want)
		}
	})
}

func TestASeriesThatHasExpiredIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.run(t, func() {
			f.record("n")
			synctest.Wait()
			if err := f.api.Tracker().Delete(eventsv1.SchemeGroupVersion.WithResource("events"), "default", f.events(t)[0].Name); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			f.record("n")
		})
		if events := f.events(t); len(events) != 1 || events[0].Series != nil {
			t.Errorf("got %v", events)
		}
	})
}

func TestEventIsRetriedWhenTheAPIServerDoesNotRespond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		failures := 3
		f.fail("", func() error {
			if failures--; failures < 0 {
				return nil
			}
			return errors.New("connection refused")
		})
		f.run(t, func() {
			f.record("n")
			time.Sleep(time.Minute)
		})
		if len(f.events(t)) != 1 || f.dropped(t) != 0 {
			t.Errorf("%d events, %v dropped", len(f.events(t)), f.dropped(t))
		}
	})
}

func TestOnlyARejectedEventIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.fail("rejected", func() error { return apierrors.NewForbidden(eventsv1.Resource("events"), "e", errors.New("no")) })
		f.fail("exists", func() error { return apierrors.NewAlreadyExists(eventsv1.Resource("events"), "e") }) // its response was lost
		f.run(t, func() {
			for _, name := range []string{"rejected", "exists", "good"} {
				f.record(name)
			}
		})
		if events := f.events(t); len(events) != 1 || events[0].Regarding.Name != "good" || f.dropped(t) != 1 {
			t.Errorf("%d events, %v dropped", len(events), f.dropped(t))
		}
	})
}

func TestRecordingNeverBlocks(t *testing.T) {
	f := newFixture() // it does not run
	for i := range 10_005 {
		f.record(strconv.Itoa(i))
	}
	if got := f.dropped(t); got != 5 {
		t.Errorf("%v dropped, want 5", got)
	}
}

func TestEventsAreDeferredWhileTheManagerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.busy.Store(true)
		f.run(t, func() {
			for i := range 5 {
				f.record(strconv.Itoa(i))
			}
			time.Sleep(4*time.Second + time.Millisecond) // two events at 2 s each
			synctest.Wait()
			if written := len(f.verbs()); written > 2 {
				t.Errorf("%d events are written while the manager is busy, want at most 2", written)
			}
			f.busy.Store(false)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if written := len(f.verbs()); written != 5 {
				t.Errorf("%d events are written when it is idle, want 5", written)
			}
		})
	})
}

func TestManyEventsAreDeferredForLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.busy.Store(true)
		for i := range 10_000 {
			f.record(strconv.Itoa(i))
		}
		f.run(t, func() {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if written := len(f.verbs()); written < 20 {
				t.Errorf("%d events are written in two seconds though ten thousand wait, want at least 20", written)
			}
		})
	})
}
