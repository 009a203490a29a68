package podrule_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// latched gives the pod a latch whose container is in this state.
func (w *world) latched(state corev1.ContainerState) {
	w.subject.Pod.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.LatchName}}
	w.subject.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.LatchName, State: state}}
}

func runs(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

var ended = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}

// held is a pod with a running latch whose gate has just been opened.
func held(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, rule("network", startHold))
	w.latched(runs(noon))
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", openKey)
	w.subject.Written = w.now
	return w
}

// A key is touched while the container of the latch runs: with growing pauses, a bounded number of times.
func TestAKeyIsTouchedWhileTheLatchRuns(t *testing.T) {
	w := held(t)
	key := openKey
	for _, pause := range []time.Duration{2, 2, 4, 8, 16} {
		w.pass(pause*time.Second - time.Millisecond)
		w.settle()
		w.expect("True AllComponentsReady", key)
		if w.last.LatchStuck || !w.last.Until.Equal(w.now.Add(time.Millisecond)) {
			t.Errorf("after %v: stuck is %v, the next decision is at %v", w.now.Sub(noon), w.last.LatchStuck, w.last.Until)
		}
		w.pass(time.Millisecond)
		if !w.step() || !w.last.Patch.Touch || len(w.last.Patch.Conditions) > 0 {
			t.Fatalf("after %v the patch is %+v", w.now.Sub(noon), w.last.Patch)
		}
		key += " "
		w.subject.Written = w.now
		w.settle()
		w.expect("True AllComponentsReady", key)
	}
	writes := w.writes
	w.pass(2 * time.Second)
	w.settle()
	if !w.last.LatchStuck {
		t.Error("it is not reported after the last touch")
	}
	w.pass(time.Hour)
	w.settle()
	if w.writes != writes {
		t.Errorf("it is touched %d times more", w.writes-writes)
	}
}

// A busy kubelet has more time to deliver a key, as long as other latches are closed.
func TestAKeyIsTouchedLaterOnABusyNode(t *testing.T) {
	for name, c := range map[string]struct {
		closed  int
		slowest time.Duration
		want    time.Duration
	}{
		"no other latch is closed":               {slowest: time.Minute, want: 2 * time.Second},
		"others are closed, and none has ended":  {closed: 30, want: 9500 * time.Millisecond},
		"others are closed, and some were slow":  {closed: 30, slowest: 16 * time.Second, want: 20 * time.Second},
		"others are closed, and all were faster": {closed: 30, slowest: 6 * time.Second, want: 9500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := held(t)
			w.subject.OthersClosed, w.subject.SlowestLatch = c.closed, c.slowest
			w.pass(c.want - time.Millisecond)
			if w.step() {
				t.Fatalf("after %v the patch is %+v", w.now.Sub(noon), w.last.Patch)
			}
			w.pass(time.Millisecond)
			if !w.step() || !w.last.Patch.Touch {
				t.Fatalf("after %v the patch is %+v", w.now.Sub(noon), w.last.Patch)
			}
		})
	}
	w := held(t)
	w.subject.OthersClosed = 30
	w.pass(2 * time.Second)
	if w.step() || !w.last.Until.Equal(w.now.Add(time.Second)) {
		t.Errorf("the next decision is at %v, want one second later: others may have ended", w.last.Until)
	}
	w.subject.OthersClosed = 0
	if !w.step() {
		t.Error("it is not touched when the others have ended")
	}
}

// A clock that is set back does not delay touches.
func TestAKeyIsTouchedAfterTheClockWasSetBack(t *testing.T) {
	w := held(t)
	w.pass(-time.Hour)
	w.subject.Written = w.now // it has a monotonic reading
	w.pass(2 * time.Second)
	if !w.step() || !w.last.Patch.Touch {
		t.Errorf("the patch is %+v", w.last.Patch)
	}
}

// A pod whose latch has ended, or has not started, is not written again.
func TestAKeyIsNotTouchedUnlessTheLatchRuns(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"the latch has ended":             func(w *world) { w.latched(ended) },
		"it has not started":              func(w *world) { w.latched(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}) },
		"the kubelet has not reported it": func(w *world) { w.subject.Pod.Status.InitContainerStatuses = nil },
		"there is none": func(w *world) {
			w.subject.Pod.Spec.InitContainers, w.subject.Pod.Status.InitContainerStatuses = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := held(t)
			change(w)
			w.pass(time.Minute)
			w.settle()
			if w.writes != 1 || w.last.LatchStuck {
				t.Errorf("%d writes, stuck is %v", w.writes, w.last.LatchStuck)
			}
		})
	}
}

// A key that was touched and has ended its latch stays as it is.
func TestATouchedKeyIsNotWrittenWhenTheLatchHasEnded(t *testing.T) {
	w := held(t)
	w.pass(2 * time.Second)
	w.step()
	w.latched(ended)
	w.pass(time.Hour)
	w.settle()
	w.expect("True AllComponentsReady", openKey+" ")
	if w.writes != 2 {
		t.Errorf("%d writes", w.writes)
	}
}

// Pauses begin when the key was written and the latch runs, whichever is later: a latch whose image was
// pulled for a minute is not touched at once, nor several times in a row.
func TestPausesBeginWithTheLatch(t *testing.T) {
	w := held(t)
	w.pass(time.Minute)
	w.latched(runs(w.now))
	w.settle()
	if w.writes != 1 || !w.last.Until.Equal(w.now.Add(2*time.Second)) {
		t.Errorf("%d writes, the next decision is at %v", w.writes, w.last.Until)
	}
	w.pass(2 * time.Second)
	w.step()
	w.subject.Written = w.now
	w.settle()
	if w.writes != 2 {
		t.Errorf("%d writes", w.writes)
	}
}

// A new sandbox has a new key, and all touches again.
func TestANewKeyHasNoTouches(t *testing.T) {
	w := held(t)
	w.pass(2 * time.Second)
	w.step()
	w.expect("True AllComponentsReady", openKey+" ")
	w.pass(time.Minute)
	w.sandbox("10.0.0.8")
	w.started()
	w.settle()
	w.setComponent("True")
	w.latched(runs(w.now))
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.8 b1 2026-11-16T12:01:02Z again")
}

// A pod does not count as open while its latch is closed.
func TestAPodWithAClosedLatchDoesNotCountAsOpen(t *testing.T) {
	w := held(t)
	is := w.tally()
	if is.Open != 0 || is.Waiting != 1 || is.LatchClosed != 1 || is.Late != 0 || is.Gated != 1 {
		t.Errorf("counted as %+v", is)
	}
	if len(is.Waits) != 1 || is.Waits[0].Why != "gate open, latch still closed" || !is.Waits[0].Since.Equal(noon) {
		t.Errorf("listed as %+v", is.Waits)
	}
	w.latched(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}})
	w.settle()
	if is := w.tally(); is.Open != 0 || is.LatchClosed != 1 {
		t.Errorf("a latch that does not start counts as %+v", is)
	}
	w.latched(ended)
	w.settle()
	if is := w.tally(); is.Open != 1 || is.Waiting != 0 || is.LatchClosed != 0 {
		t.Errorf("a latch that has ended counts as %+v", is)
	}
	w.follow(rule("network"))
	w.latched(runs(noon))
	w.settle()
	if is := w.tally(); is.Open != 1 || is.LatchClosed != 0 {
		t.Errorf("a rule without startHold counts the pod as %+v", is)
	}
}

// Only a caller that delivers keys touches them: the cleanup, or a command, does not.
func TestOnlyAnAgentTouchesKeys(t *testing.T) {
	w := held(t)
	w.subject.Delivers = false
	w.pass(time.Hour)
	w.settle()
	w.expect("True AllComponentsReady", openKey)
	if w.last.LatchClosed.IsZero() {
		t.Error("the closed latch is not reported")
	}
}

// Blanks that another account adds do not keep the key from a latch, which reads short files only.
func TestBlanksOfAnotherAccountAreRemoved(t *testing.T) {
	w := held(t)
	for range 3 {
		w.subject.Pod.Annotations[v1alpha1.LatchAnnotation] = openKey + strings.Repeat(" ", 2000)
		if w.step() {
			t.Fatalf("it is written at once: %+v", w.last.Patch)
		}
		w.pass(2 * time.Second)
		w.step()
		w.expect("True AllComponentsReady", openKey)
		w.subject.Written = w.now
	}
	w.latched(ended)
	w.subject.Pod.Annotations[v1alpha1.LatchAnnotation] = openKey + strings.Repeat(" ", 2000)
	w.pass(time.Hour)
	if w.step() {
		t.Errorf("it is written after the latch has ended: %+v", w.last.Patch)
	}
}
