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

// LatchState reports whether the containers of a pod wait for its network before they start.
type LatchState string

const (
	// LatchNone means that the pod has no latch: its containers start without waiting.
	LatchNone LatchState = "None"
	// LatchWaiting means that the containers wait.
	LatchWaiting LatchState = "Waiting"
	// LatchOpen means that the containers may start.
	LatchOpen LatchState = "Open"
)

// Latch is the latch of a pod.
type Latch struct {
	State LatchState `json:"state"`
	// Text describes the state in one sentence, without its subject.
	Text string `json:"text"`
	// Key is the value of the annotation that opens the latch; empty if the pod has none.
	Key string `json:"key,omitempty"`
	// Problem is the reason why the latch container does not run; empty if there is none.
	Problem string `json:"problem,omitempty"`
}

// latchOf returns the latch of a pod. The boot is the boot ID of its node; empty if unknown.
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

// full reports whether the annotations of a pod have no room for a key.
func full(obj *corev1.Pod) bool {
	const aKey = 256
	left := validation.TotalAnnotationSizeLimitB
	for name, value := range obj.Annotations {
		left -= len(name) + len(value)
	}
	return left < aKey
}

// latchContainer reports whether the latch container has succeeded, or why it does not run.
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
