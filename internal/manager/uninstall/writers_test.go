package uninstall

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func testRun(objs ...client.Object) *run {
	options := NewOptions()
	options.Namespace = "ours"
	return &run{Options: options, client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objs...).Build()}
}

// An empty selector matches all objects for the API server; here it must match none.
func TestWithoutLabelsNoDaemonSetIsDeleted(t *testing.T) {
	for name, selector := range map[string]labels.Selector{"none": nil, "an empty one": labels.Everything(), "one that matches nothing": labels.Nothing()} {
		t.Run(name, func(t *testing.T) {
			r := testRun(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ours", Name: "other"}})
			if err := r.deleteDaemonSets(t.Context(), "reporters", selector); err != nil {
				t.Fatal(err)
			}
			var left appsv1.DaemonSetList
			if err := r.client.List(t.Context(), &left); err != nil || len(left.Items) != 1 {
				t.Errorf("left: %v, %v", left.Items, err)
			}
		})
	}
}

// The cleanup waits only for pods that may still write: not for terminated pods, and not for its own pod, which may
// have the same labels.
func TestOnlyPodsOfWritersAreWaitedFor(t *testing.T) {
	pod := func(name, owner string, phase corev1.PodPhase) client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ours", Name: name, Labels: map[string]string{"app": "a"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: owner, Name: "owner", UID: "u", Controller: ptr.To(true)}},
			},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	elsewhere := pod("elsewhere", "ReplicaSet", corev1.PodRunning)
	elsewhere.SetNamespace("other")
	r := testRun(elsewhere, pod("manager", "ReplicaSet", corev1.PodRunning), pod("reporter", "DaemonSet", corev1.PodPending),
		pod("ended", "ReplicaSet", corev1.PodFailed), pod("cleanup", "Job", corev1.PodRunning))
	got, err := r.pods(t.Context(), []labels.Selector{nil, labels.SelectorFromSet(labels.Set{"app": "a"})})
	if want := []string{"manager", "reporter"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
