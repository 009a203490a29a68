package podgate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// newPod returns a pod of the stage's namespace and node with the label app and this name, not created yet.
func (s *stage) newPod(app string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.id, Name: app, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: s.id, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// pod creates newPod.
func (s *stage) pod(app string, change ...func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	pod := s.newPod(app, change...)
	s.createPod(pod)
	return pod
}

// createPod creates the pod. At the end it deletes the pod without a grace period: no kubelet would stop the pod.
func (s *stage) createPod(pod *corev1.Pod) {
	s.t.Helper()
	if err := s.Client.Create(s.t.Context(), pod); err != nil {
		s.t.Fatalf("creating pod %s: %v", pod.Name, err)
	}
	s.t.Cleanup(func() { _ = s.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0)) }) // it may be gone
}

func named(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Name = name } }

func unscheduled(p *corev1.Pod) { p.Spec.NodeName = "" }

func onNode(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = maps.Clone(p.Labels)
		p.Labels[key] = value
	}
}

// optOut keeps all rules from selecting a pod.
func optOut(p *corev1.Pod) { labelled(v1alpha1.OptOutLabel, v1alpha1.OptOut)(p) }

// gatesOf returns the gates of a pod, and the gates in the annotation that the API server added.
func gatesOf(pod *corev1.Pod) (gates []string, noted string) {
	for _, gate := range pod.Spec.ReadinessGates {
		gates = append(gates, string(gate.ConditionType))
	}
	return gates, pod.Annotations[v1alpha1.GatesAnnotation]
}

// conditionOf returns the pod's condition of a type; nil if it has none.
func conditionOf(pod *corev1.Pod, kind string) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// gateOf returns the status and reason of a gate, e.g. "True AllComponentsReady", or absent.
func gateOf(pod *corev1.Pod, gate string) string {
	if is := conditionOf(pod, gate); is != nil {
		return string(is.Status) + " " + is.Reason
	}
	return absent
}

// States of gates.
const (
	absent     = "absent"
	allReady   = "True " + v1alpha1.ReasonAllReady
	waits      = "False " + v1alpha1.ReasonWaiting
	newSandbox = "False " + v1alpha1.ReasonNewSandbox
)

// get returns the current pod.
func (s *stage) get(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	got := &corev1.Pod{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(pod), got); err != nil {
		s.t.Fatal(err)
	}
	return got
}

// wantGate waits until the gate has this state, and its message contains these texts. It returns the pod.
func (s *stage) wantGate(pod *corev1.Pod, gate, want string, words ...string) *corev1.Pod {
	s.t.Helper()
	var got *corev1.Pod
	testenv.Eventually(s.t, fmt.Sprintf("pod %s: %s, %q", pod.Name, want, words), func(ctx context.Context) error {
		got = &corev1.Pod{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(pod), got); err != nil {
			return err
		}
		return complaint(got, gate, want, words...)
	})
	return got
}

// complaint returns an error if the gate of a pod differs; nil if it does not.
func complaint(pod *corev1.Pod, gate, want string, words ...string) error {
	is := gateOf(pod, gate)
	if is == absent && want == absent {
		return nil
	}
	if is != want {
		return fmt.Errorf("the gate is %s, want %s: conditions %+v, annotations %v", is, want, pod.Status.Conditions, pod.Annotations)
	}
	for _, word := range words {
		if message := conditionOf(pod, gate).Message; !strings.Contains(message, word) {
			return fmt.Errorf("the message is %q, want %q in it", message, word)
		}
	}
	return nil
}

// writes counts the requests of agents for the pod so far, including failed ones.
func (s *stage) writes(pod *corev1.Pod) int {
	s.t.Helper()
	count := 0
	for _, r := range s.Requests(s.t, admission.PodgateUser) {
		if r.IsWrite() && r.Resource == "pods" && r.Namespace == pod.Namespace && r.Name == pod.Name {
			count++
		}
	}
	return count
}

// wantEvent waits for a Warning event of this reason about the pod, which contains these texts.
func (s *stage) wantEvent(pod *corev1.Pod, reason string, words ...string) {
	s.t.Helper()
	var found *eventsv1.Event
	testenv.Eventually(s.t, reason+" about "+pod.Name, func(ctx context.Context) error {
		events, err := s.eventsAbout(ctx, pod)
		i := slices.IndexFunc(events, func(e eventsv1.Event) bool { return e.Reason == reason })
		if err != nil || i < 0 {
			return fmt.Errorf("not there (%v)", err)
		}
		found = &events[i]
		return nil
	})
	if found.Type != corev1.EventTypeWarning || found.ReportingController != v1alpha1.Reporter {
		s.t.Errorf("%s is %s, of %s", reason, found.Type, found.ReportingController)
	}
	for _, word := range words {
		if !strings.Contains(found.Note, word) {
			s.t.Errorf("event %s lacks %q: %s", reason, word, found.Note)
		}
	}
}

func (s *stage) eventsAbout(ctx context.Context, pod *corev1.Pod) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	err := s.Client.List(ctx, &list, client.InNamespace(pod.Namespace))
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.UID != pod.UID }), err
}
