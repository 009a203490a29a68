package view

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
)

// LatchState says whether containers of a pod wait for its network before they start.
type LatchState string

const (
	// LatchNone says that the pod has no latch: they start without waiting.
	LatchNone LatchState = "None"
	// LatchWaiting says that they wait.
	LatchWaiting LatchState = "Waiting"
	// LatchOpen says that they may start.
	LatchOpen LatchState = "Open"
)

// Latch is the latch of a pod.
type Latch struct {
	State LatchState `json:"state"`
	// Text says it in one sentence.
	Text string `json:"text"`
	// Key is the annotation that opens it; empty if the pod has none.
	Key string `json:"key,omitempty"`
	// Problem is why its container does not run; empty if nothing is wrong with it.
	Problem string `json:"problem,omitempty"`
}

// latchOf is the latch of a pod. The boot is that of its node; empty if it is not known.
func latchOf(obj *corev1.Pod, boot string) Latch {
	if !podrule.HasLatch(obj) {
		return Latch{State: LatchNone, Text: "is absent: the pod's containers start without waiting for its network"}
	}
	value, has := obj.Annotations[v1alpha1.LatchAnnotation]
	latch := Latch{State: LatchWaiting, Key: value}
	key, ok := latchkey.Parse(value)
	opens := ok && key.Opens(obj.Status.PodIP, boot)
	passed, problem := latchContainer(obj)
	switch {
	case passed:
		latch.State, latch.Text = LatchOpen, "has ended; the pod's containers may start"
	case opens && podrule.LatchReported(obj):
		latch.Text = "is still closed, although its key is open: the kubelet has not delivered the key, or has not reported that the latch ended"
	case opens && key.Always != "":
		latch.State, latch.Text = LatchOpen, "is open for every sandbox ("+key.Always+")"
	case opens:
		latch.State, latch.Text = LatchOpen, "is open for this sandbox; the kubelet has yet to deliver the key"
	case has && !ok:
		latch.Text = fmt.Sprintf("waits: annotation %s is %s, which is not a valid key", v1alpha1.LatchAnnotation, strconv.Quote(value))
	case key.Open:
		latch.Text = "waits: its key belongs to another sandbox, with address " + key.Sandbox.IP
	case has:
		latch.Text = "waits: its key is closed"
	case full(obj):
		latch.Text = "waits: the pod's annotations have no room for its key; remove some"
	default:
		latch.Text = "waits: its key has not been written yet"
	}
	if latch.State == LatchWaiting {
		latch.Problem = problem
	}
	return latch
}

// full says that the annotations of a pod have no room for a key.
func full(obj *corev1.Pod) bool {
	const aKey = 256
	left := validation.TotalAnnotationSizeLimitB
	for name, value := range obj.Annotations {
		left -= len(name) + len(value)
	}
	return left < aKey
}

// latchContainer says whether the latch has ended well, or why it does not run.
func latchContainer(obj *corev1.Pod) (passed bool, problem string) {
	i := slices.IndexFunc(obj.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == v1alpha1.LatchName })
	if i < 0 {
		return false, ""
	}
	state := &obj.Status.InitContainerStatuses[i].State
	switch {
	case state.Terminated != nil && state.Terminated.ExitCode == 0:
		return true, ""
	case state.Terminated != nil:
		return false, fmt.Sprintf("it ended with code %d", state.Terminated.ExitCode)
	case state.Waiting != nil && state.Waiting.Reason != "" && state.Waiting.Reason != "PodInitializing" && state.Waiting.Reason != "ContainerCreating":
		return false, state.Waiting.Reason + " " + state.Waiting.Message
	}
	return false, ""
}
