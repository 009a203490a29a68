package uninstall

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

const otherGate = "example.com/other"

// gated is a pod with gates, some of them of rules, and with annotations and conditions of other clients.
func gated(asked string, options ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a", UID: "u", Annotations: map[string]string{"example.com/note": "a"}},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1alpha1.DefaultGate}, {ConditionType: otherGate}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}},
	}
	if asked != "" {
		pod.Annotations[v1alpha1.GatesAnnotation] = asked
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func is(gate string, status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(gate), Status: status, Reason: reason})
	}
}

func latched(key string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.LatchName}}
		pod.Annotations[v1alpha1.LatchAnnotation] = key
	}
}

// latchRuns makes the kubelet report that the latch runs.
func latchRuns(pod *corev1.Pod) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.LatchName, State: running}}
}

// opened visits a pod, and returns it as the API server then stores it.
func opened(t *testing.T, pod *corev1.Pod) (*corev1.Pod, bool) {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, requests := before, 0
	r := testRun()
	r.client = interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, subresource string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			requests++
			if subresource != "status" || obj.GetNamespace() != pod.Namespace || obj.GetName() != pod.Name {
				t.Errorf("written: %s of %s/%s", subresource, obj.GetNamespace(), obj.GetName())
			}
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			after, err = strategicpatch.StrategicMergePatch(before, data, corev1.Pod{})
			return err
		},
	})
	changed, err := r.open(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[bool]int{true: 1, false: 0}[changed]; requests != want {
		t.Errorf("%d requests, want %d", requests, want)
	}
	result := &corev1.Pod{}
	if err := json.Unmarshal(after, result); err != nil {
		t.Fatal(err)
	}
	return result, changed
}

// gatesAndKey returns the gates of a pod, by name, and the key of its latch.
func gatesAndKey(pod *corev1.Pod) string {
	var words []string
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodScheduled {
			words = append(words, fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason))
		}
	}
	slices.Sort(words)
	return strings.Join(append(words, pod.Annotations[v1alpha1.LatchAnnotation]), "; ")
}

// The cleanup opens the gates of rules, and latches permanently, and changes nothing else. A second visit changes
// nothing.
func TestCleanupOpensTheGatesOfRules(t *testing.T) {
	const (
		gate  = v1alpha1.DefaultGate
		ready = gate + "=True " + v1alpha1.ReasonRuleDeleted
		key   = "always " + v1alpha1.ReasonRuleDeleted
	)
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		// want has the gates and the key after the visit; empty if nothing is written.
		want string
	}{
		"without a condition":                   {gated(gate), ready + "; " + key},
		"closed":                                {gated(gate, is(gate, "False", v1alpha1.ReasonWaiting)), ready + "; " + key},
		"closed, with a latch":                  {gated(gate, is(gate, "False", v1alpha1.ReasonWaiting), latched("closed 10.0.0.7 b 2026-11-16T10:00:00Z")), ready + "; " + key},
		"open, with a latch":                    {gated(gate, is(gate, "True", v1alpha1.ReasonAllReady), latched("open 10.0.0.7 b 2026-11-16T10:00:00Z")), gate + "=True AllComponentsReady; " + key},
		"open long ago, with a latch that runs": {gated(gate, is(gate, "True", v1alpha1.ReasonRuleDeleted), latched(key), latchRuns), ""},
		"open, with a latch that stays so":      {gated(gate, is(gate, "True", v1alpha1.ReasonAgentGone), latched("always AgentGone")), ""},
		"open, without a latch":                 {gated(gate, is(gate, "True", v1alpha1.ReasonAllReady)), ""},
		"two gates, of which one is open":       {gated(gate+" "+otherGate, is(gate, "True", v1alpha1.ReasonAllReady)), otherGate + "=True RuleDeleted; " + gate + "=True AllComponentsReady; " + key},
		"gates that no rule added":              {gated(""), ""},
		"with a gate of another client":         {gated(gate, is(otherGate, "False", "Theirs")), otherGate + "=False Theirs; " + ready + "; " + key},
		"a pod that has ended":                  {gated(gate, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), ""},
		"a gate that the pod does not have":     {gated("example.com/none"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			after, changed := opened(t, tc.pod)
			want := cmp.Or(tc.want, gatesAndKey(tc.pod))
			if got := gatesAndKey(after); got != want || changed != (tc.want != "") {
				t.Errorf("changed: %v, got\n%s\nwant\n%s", changed, got, want)
			}
			scheduled := slices.ContainsFunc(after.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue
			})
			if after.Annotations["example.com/note"] != "a" || !scheduled {
				t.Errorf("an annotation or a condition of another client is lost: %v %v", after.Annotations, after.Status.Conditions)
			}
			if _, again := opened(t, after); again {
				t.Error("a second visit changes the pod again")
			}
		})
	}
}

// Full annotations of a pod do not block the cleanup: its gates are opened, and a second visit changes nothing.
func TestPodWithoutRoomForAKeyIsOpenedWithoutIt(t *testing.T) {
	full := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{field.TooLong(field.NewPath("metadata", "annotations"), "", 1)})
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		changed bool
	}{
		"closed": {gated(v1alpha1.DefaultGate, is(v1alpha1.DefaultGate, "False", v1alpha1.ReasonWaiting), latched("")), true},
		"open":   {gated(v1alpha1.DefaultGate, is(v1alpha1.DefaultGate, "True", v1alpha1.ReasonAllReady), latched("")), false},
	} {
		t.Run(name, func(t *testing.T) {
			r, written := testRun(), false
			r.client = interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					if err != nil || strings.Contains(string(data), v1alpha1.LatchAnnotation) {
						return cmp.Or[error](err, full)
					}
					written = true
					return nil
				},
			})
			if changed, err := r.open(t.Context(), tc.pod); err != nil || changed != tc.changed || written != tc.changed {
				t.Errorf("changed: %v, written: %v, error: %v", changed, written, err)
			}
		})
	}
}

// Leases of agents are deleted, other leases stay.
func TestLeasesOfAgentsAreDeleted(t *testing.T) {
	lease := func(namespace, name string, labels map[string]string) client.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	ours := map[string]string{"app.kubernetes.io/part-of": "readygate", "app.kubernetes.io/component": "podgate"}
	r := testRun(lease("ours", "podgate-a", ours), lease("ours", "podgate-b", ours), lease("ours", "other", nil), lease("elsewhere", "podgate-a", ours))
	if err := r.deleteLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left coordinationv1.LeaseList
	if err := r.client.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 2 || r.count["leases of agents"] != 2 {
		t.Errorf("left: %v; counted: %v", left.Items, r.count)
	}
}
