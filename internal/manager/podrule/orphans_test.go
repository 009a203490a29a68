package podrule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/manager/nodecache"
)

// A pod with full annotations, and a pod that cannot be written, delay no other pod. The gate of the first one is opened
// without a key.
func TestPodThatCannotBeWrittenDelaysNoOtherPod(t *testing.T) {
	const full, refused = "n1", "n2"
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	ago := metav1.NewTime(time.Now().Add(-time.Hour))
	rule := &v1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: "network", UID: "network", CreationTimestamp: ago},
		Spec: v1alpha1.PodReadinessRuleSpec{
			Components:      []v1alpha1.Component{{Name: "policy", PodCondition: &v1alpha1.ConditionComponent{Type: "example.com/programmed"}}},
			DeadlineSeconds: ptr.To[int32](60), OnDeadline: v1alpha1.DeadlineOpen,
		},
	}
	objects, nodes := []client.Object{rule, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}, cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, node := range []string{full, refused, "n3"} {
		if err := nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, CreationTimestamp: ago}}); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: node, UID: types.UID(node), Annotations: map[string]string{v1alpha1.GatesAnnotation: v1alpha1.DefaultGate}},
			Spec:       corev1.PodSpec{NodeName: node, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1alpha1.DefaultGate}}},
			Status:     corev1.PodStatus{PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: "True", LastTransitionTime: ago}}},
		})
	}
	invalid := func(pod string, path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod, field.ErrorList{field.TooLong(path, "", 262144)})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			switch {
			case err != nil:
				return err
			case obj.GetName() == full && bytes.Contains(data, []byte(v1alpha1.LatchAnnotation)):
				return invalid(full, field.NewPath("metadata", "annotations"))
			case obj.GetName() == refused:
				return invalid(refused, field.NewPath("spec"))
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, o...)
		}}).Build()
	r := &Reconciler{Client: c, Live: c, Nodes: nodecache.New(nodes), Events: events.NewFakeRecorder(100), Clock: clock.RealClock{}}
	err := r.Round(t.Context())
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("shop/"+refused)) {
		t.Errorf("the error does not name the pod that cannot be written: %v", err)
	}
	for node, want := range map[string]bool{full: true, refused: false, "n3": true} {
		var pod corev1.Pod
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: node}, &pod); err != nil {
			t.Fatal(err)
		}
		if open := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.DefaultGate && c.Status == "True" }); open != want {
			t.Errorf("the pod on %s is open: %t", node, open)
		}
	}
	if !r.orphans.ended.Load() {
		t.Error("the round has not ended")
	}
}

// Nodes where no pod has a gate are visited, but do not delay nodes with gates.
func TestQuietNodesAreVisitedInTurn(t *testing.T) {
	var o orphans
	var nodes []string
	for i := range 100 {
		nodes = append(nodes, fmt.Sprintf("n%02d", i))
	}
	if got := len(o.next(nodes)); got != 25 {
		t.Errorf("%d of 100 new nodes are visited, want a quarter", got)
	}
	for i, node := range nodes {
		gated := 0
		if i < 10 {
			gated = 1
		}
		o.keep(node, &visited{tallies: map[types.UID]*podrule.Tally{"network": {Gated: gated}}})
	}
	seen := map[string]int{}
	for range 9 {
		for _, node := range o.next(nodes) {
			seen[node]++
		}
	}
	for i, node := range nodes {
		if want := 9; i < 10 && seen[node] != want {
			t.Errorf("%s, which has a gate, was visited %d times, want %d", node, seen[node], want)
		}
		if want := 2; i >= 10 && seen[node] != want {
			t.Errorf("%s, which has none, was visited %d times, want %d", node, seen[node], want)
		}
	}
	if got := o.next(nodes[:5]); len(got) != 5 || len(o.found) != 5 {
		t.Errorf("%d are visited and %d known, want the five that are left", len(got), len(o.found))
	}
}
