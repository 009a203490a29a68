package podgate

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// latchedPod is a pod whose latch is in this state.
func latchedPod(name, key string, state corev1.ContainerState) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), Annotations: map[string]string{v1alpha1.LatchAnnotation: key}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.LatchName, State: state}}
	return pod
}

// The slowest latch counts only the time from its key: not an image pull, not the time without a key, and not a
// missed key.
func TestTheSlowestLatchOfTheNode(t *testing.T) {
	const key = "open 10.0.0.7 b1 2026-11-16T10:00:00Z"
	for name, c := range map[string]struct {
		key        string
		started    time.Duration // after the key was written
		took, want time.Duration
		unwritten  bool
	}{
		"it waited for its key":            {key: key, took: 9 * time.Second, want: 9 * time.Second},
		"its image was pulled meanwhile":   {key: key, started: time.Minute, took: 61 * time.Second, want: time.Second},
		"it missed its key":                {key: key, took: 75 * time.Second, want: slowestLatch},
		"its key was touched":              {key: key + " ", took: 9 * time.Second},
		"another agent has written it":     {key: key, took: 9 * time.Second, unwritten: true},
		"its clock was set back meanwhile": {key: key, started: time.Hour, took: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			now := testclock.NewFakeClock(time.Unix(1e9, 0))
			a := &Agent{Clock: now, Changed: func() {}}
			written := now.Now()
			pod := latchedPod("b", c.key, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
			a.remember(pod, podrule.Decision{LatchClosed: written})
			if !c.unwritten {
				a.stateOf(pod).written = written
			}
			if closed, _ := a.latches(keyOf(latchedPod("other", "", corev1.ContainerState{})), now.Now()); closed != 1 {
				t.Errorf("%d latches are closed, want 1", closed)
			}
			if closed, _ := a.latches(keyOf(pod), now.Now()); closed != 0 {
				t.Errorf("%d other latches are closed, want 0", closed)
			}
			now.Step(c.took)
			pod = latchedPod("b", c.key, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(written.Add(c.started))}})
			a.remember(pod, podrule.Decision{})
			closed, slowest := a.latches(types.NamespacedName{}, now.Now())
			if max(slowest, 0) != c.want || closed != 0 {
				t.Errorf("the slowest took %v, want %v; %d are closed", slowest, c.want, closed)
			}
			now.Step(time.Minute)
			if _, slowest := a.latches(types.NamespacedName{}, now.Now()); slowest != 0 {
				t.Errorf("the slowest took %v a minute later", slowest)
			}
		})
	}
}

// A kubelet that is slow with a hundred latches costs few touches. On a node with two
// cores that starts a hundred pods at once, the delay was 8 to 40 s.
func TestALateKubeletCausesFewTouches(t *testing.T) {
	const crowd, component = 100, "example.com/programmed"
	rules := podrule.NewRules([]*v1alpha1.PodReadinessRule{{
		ObjectMeta: metav1.ObjectMeta{Name: "crowd"},
		Spec:       v1alpha1.PodReadinessRuleSpec{StartHold: true, Components: []v1alpha1.Component{{Name: "c", PodCondition: &v1alpha1.ConditionComponent{Type: component}}}},
	}})
	for _, late := range []time.Duration{5 * time.Second, 15 * time.Second, 40 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			now := testclock.NewFakeClock(time.Unix(1e9, 0))
			a := &Agent{Clock: now, Changed: func() {}}
			held := func(i int) *corev1.Pod { // whose gate is open and whose latch runs
				since := metav1.NewTime(now.Now().Truncate(time.Second))
				pod := latchedPod("p"+strconv.Itoa(i), "open 10.0.0.7 b1 "+since.UTC().Format(time.RFC3339), corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}})
				pod.Annotations[v1alpha1.GatesAnnotation] = v1alpha1.DefaultGate
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1alpha1.DefaultGate}}
				pod.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.LatchName}}
				pod.Status.PodIP = "10.0.0.7"
				for kind, reason := range map[corev1.PodConditionType]string{corev1.PodReadyToStartContainers: "", component: "", v1alpha1.DefaultGate: v1alpha1.ReasonAllReady} {
					pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: since})
				}
				a.stateOf(pod).written = now.Now()
				return pod
			}
			var pods []*corev1.Pod
			var opened []time.Time
			touches := 0
			for range 300 {
				now.Step(500 * time.Millisecond)
				if len(pods) < crowd {
					pods, opened = append(pods, held(len(pods))), append(opened, now.Now())
				}
				for i, pod := range pods {
					if now.Since(opened[i]) >= late {
						pod.Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(opened[i])}}
					}
					s := &podrule.Subject{Pod: pod, Node: podrule.Node{BootID: "b1"}, Delivers: true}
					s.Seen, s.Written, s.History = a.seen(s, now.Now())
					s.OthersClosed, s.SlowestLatch = a.latches(keyOf(pod), now.Now())
					d := podrule.Decide(rules, s, nil, now.Now())
					a.remember(pod, d)
					if d.Patch == nil {
						continue
					}
					if !d.Patch.Touch {
						t.Fatalf("the patch is %+v", d.Patch)
					}
					touches++
					pod.Annotations[v1alpha1.LatchAnnotation] = d.Patch.Key
					a.stateOf(pod).written = now.Now()
				}
			}
			t.Logf("%d touches", touches)
			if touches > crowd/5 {
				t.Errorf("%d touches of %d pods", touches, crowd)
			}
			for i, pod := range pods {
				if !podrule.LatchEnded(pod) {
					t.Fatalf("pod %d has not ended", i)
				}
			}
		})
	}
}

// A latch that waits for something else, such as its image, does not delay touches of other latches indefinitely.
func TestALatchThatStaysClosedDoesNotCountForLong(t *testing.T) {
	now := testclock.NewFakeClock(time.Unix(1e9, 0))
	a := &Agent{Clock: now, Changed: func() {}}
	a.remember(latchedPod("b", "", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}), podrule.Decision{LatchClosed: now.Now()})
	now.Step(time.Minute - 1)
	if closed, _ := a.latches(types.NamespacedName{}, now.Now()); closed != 1 {
		t.Errorf("%d are closed, want 1", closed)
	}
	now.Step(1)
	if closed, _ := a.latches(types.NamespacedName{}, now.Now()); closed != 0 {
		t.Errorf("%d are closed a minute later, want 0", closed)
	}
}

// A write that an API server has rejected did not happen. Any other failed write may have happened.
func TestUnansweredWrites(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"time is up":         {context.DeadlineExceeded, true},
		"connection lost":    {errors.New("EOF"), true},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), true},
		"server timeout":     {apierrors.NewServerTimeout(resource, "patch", 1), true},
		"forbidden":          {apierrors.NewForbidden(resource, "a", errors.New("policy")), false},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), false},
		"conflict":           {apierrors.NewConflict(resource, "a", errors.New("uid")), false},
		"wrapped, forbidden": {errors.Join(apierrors.NewForbidden(resource, "a", errors.New("policy"))), false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
