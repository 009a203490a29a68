package podrule

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// A latch reads its key from a downward API volume. The kubelet can miss an update of that volume until its next periodic
// sync of the pod, 60 to 90 s later. Another change of an annotation makes it sync the pod at once, so podgate touches the
// key, that is, writes it again, while the container of the latch runs.
//
// touchPauses are the times between the write of a key and its first touch, and between touches: a key is
// touched after 2, 4, 8, 16 and 32 s on a node that is not busy.
var touchPauses = [latchkey.MaxTouches]time.Duration{2 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// Where other latches of the node are closed, too, the kubelet is busy, and reports late that a latch has
// ended: with 100 pods at once on two cores 8 to 19 s late. A touch then delays it further, so a pause grows by
// busyPause for every such latch, and lasts at least slowFactor times as long as the slowest latch of the last minute.
const (
	busyPause  = 250 * time.Millisecond
	slowFactor = 1.25
	// touchLook is the interval at which podgate then checks for a due touch: the pauses get shorter with each latch that
	// ends.
	touchLook = time.Second
)

// touchPause is the time between the write of a key, or a touch, and the next touch. After the last touch it is as long
// as before the first.
func (f *facts) touchPause(touches int) time.Duration {
	pause := touchPauses[touches%len(touchPauses)]
	if f.OthersClosed == 0 {
		return pause
	}
	return max(pause+time.Duration(f.OthersClosed)*busyPause, time.Duration(slowFactor*float64(f.SlowestLatch)))
}

// LatchClosedWords describe a pod whose gates have opened its latch while the latch has not ended.
const LatchClosedWords = "gate open, latch still closed"

// LatchHolds reports whether a gate is open and its rules count the pod as waiting: the latch that the gate
// opens is still closed.
func (d *Decision) LatchHolds(v *Verdict) bool {
	return v.Open && !d.LatchClosed.IsZero() && holdsStart(v)
}

// latchState is the state of the latch's container; nil if the kubelet has not reported it.
func latchState(pod *corev1.Pod) *corev1.ContainerState {
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; status.Name == v1alpha1.LatchName {
			return &status.State
		}
	}
	return nil
}

// LatchReported reports whether the kubelet has reported the state of the latch.
func LatchReported(pod *corev1.Pod) bool { return latchState(pod) != nil }

// LatchStarted is when the container of a latch that has ended was started; zero if it has not ended.
func LatchStarted(pod *corev1.Pod) time.Time {
	if !LatchEnded(pod) {
		return time.Time{}
	}
	return latchState(pod).Terminated.StartedAt.Time
}

// LatchEnded reports whether the latch has exited with 0, so that the kubelet starts the containers of the pod.
func LatchEnded(pod *corev1.Pod) bool {
	state := latchState(pod)
	return state != nil && state.Terminated != nil && state.Terminated.ExitCode == 0
}

// touch sets since when an open key has not ended the latch, and returns the key to write: with one touch more than the
// pod's key has, if a touch is due.
func (d *decider) touch(key latchkey.Key) latchkey.Key {
	written := d.hasKey(key)
	if written {
		key.Touches = d.key.Touches
	}
	state := latchState(d.Pod)
	if !key.Open || state == nil || LatchEnded(d.Pod) {
		return key
	}
	d.LatchClosed = d.gatesOpened(d.Verdicts)
	if !written || !d.Delivers || state.Running == nil {
		return key
	}
	if d.OthersClosed > 0 {
		d.wakeAt(d.now.Add(touchLook))
	}
	due := latest(latest(d.past(d.LatchClosed), d.past(state.Running.StartedAt.Time)), d.Written).Add(d.touchPause(key.Touches))
	switch {
	case !d.reached(due):
		d.wakeAt(due)
	case key.Touches == latchkey.MaxTouches:
		d.LatchStuck = true
	default:
		key.Touches++
	}
	return key
}

// past is a time of the pod's status, or zero if it is in the future: the clock of the node was set back, and
// a pause must not last until that time.
func (f *facts) past(t time.Time) time.Time {
	if t.After(f.now) {
		return time.Time{}
	}
	return t
}

// hasKey reports whether the pod has this open key already, with touches of podgate only.
func (f *facts) hasKey(key latchkey.Key) bool {
	return f.keyed && f.key.Open && !f.keyTooLong() && key.Open && f.key.Always == key.Always && (key.Always != "" || f.key.Sandbox.Same(key.Sandbox))
}

// gatesOpened is when the last of the gates opened that the latch waits for.
func (f *facts) gatesOpened(verdicts []Verdict) time.Time {
	last := f.sandbox.Since
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case len(v.Rules) > 0 && !holdsStart(v):
		case !f.isOpen(v.Gate):
			return f.now
		default:
			last = latest(last, condition(f.Pod, v.Gate).LastTransitionTime.Time)
		}
	}
	return last
}
