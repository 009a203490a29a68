package nodecache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

func TestStripKeepsWhatDecisionsNeed(t *testing.T) {
	heard := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			Annotations:   map[string]string{"example.com/x": "y", "readygate.dev/hold-u": "{}", "readiness.k8s.io/bootstrap-completed-u": "{}"},
			ManagedFields: []metav1.ManagedFieldsEntry{{}},
		},
		Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24", ProviderID: "p", Taints: []corev1.Taint{{Key: "example.com/foreign", Effect: corev1.TaintEffectNoExecute, TimeAdded: &heard}}},
		Status: corev1.NodeStatus{
			Images:     []corev1.ContainerImage{{Names: []string{"x"}}},
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", Message: "long", Reason: "r", LastHeartbeatTime: heard}},
			NodeInfo:   corev1.NodeSystemInfo{BootID: "b", KernelVersion: "k"},
		},
	}
	before := noderule.NodeOf(node.DeepCopy())
	stripped, err := new(Stripper).Strip(node)
	if err != nil {
		t.Fatal(err)
	}
	got := stripped.(*corev1.Node)
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "7", Labels: before.Labels,
			Annotations: map[string]string{"readygate.dev/hold-u": "{}", "readiness.k8s.io/bootstrap-completed-u": "{}"},
		},
		Spec: corev1.NodeSpec{Taints: before.Taints},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: heard}},
			NodeInfo:   corev1.NodeSystemInfo{BootID: "b"},
		},
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// A node without annotations must differ from a node with annotations of other clients only: the patch creates the map
// only if there is none.
func TestStripKeepsThatThereAreAnnotations(t *testing.T) {
	for name, annotations := range map[string]map[string]string{"none": nil, "foreign ones only": {"example.com/x": "y"}} {
		stripped, err := new(Stripper).Strip(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
		if err != nil {
			t.Fatal(err)
		}
		if kept := stripped.(*corev1.Node).DeepCopy().Annotations; (kept == nil) != (annotations == nil) {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
}

func TestNodesShareEqualStrings(t *testing.T) {
	var s Stripper
	strip := func() *corev1.Node {
		stripped, err := s.Strip(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:   strings.Clone("node-1"),
				Labels: map[string]string{strings.Clone("zone"): strings.Clone("eu-central-1a"), corev1.LabelHostname: strings.Clone("node-1")},
			},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: strings.Clone("example.com/gpu"), TimeAdded: &metav1.Time{}}}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeConditionType(strings.Clone("Ready"))}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return stripped.(*corev1.Node)
	}
	one, other := strip(), strip()
	for what, pair := range map[string][2]string{
		"value of a label": {one.Labels["zone"], other.Labels["zone"]},
		"name of a node":   {one.Name, one.Labels[corev1.LabelHostname]},
		"key of a taint":   {one.Spec.Taints[0].Key, other.Spec.Taints[0].Key},
		"condition type":   {string(one.Status.Conditions[0].Type), string(other.Status.Conditions[0].Type)},
	} {
		if pair[0] == "" || unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s is kept twice", what)
		}
	}
	if one.Spec.Taints[0].TimeAdded == nil {
		t.Error("a taint lost its time: the patch tests the whole list")
	}
}

func TestDictionaryDropsUnusedStrings(t *testing.T) {
	var d dictionary
	common := d.canonical("common")
	for i := range 10 * dictionaryPage {
		d.canonical(fmt.Sprintf("node-%d", i))
		if i%100 == 0 && unsafe.StringData(d.canonical(strings.Clone("common"))) != unsafe.StringData(common) {
			t.Fatalf("a string in use was removed after %d others", i)
		}
	}
	if size := len(d.page) + len(d.before); size > 2*dictionaryPage {
		t.Errorf("the dictionary has %d strings", size)
	}
}

// BenchmarkStrip also reports the memory of a node in the cache.
func BenchmarkStrip(b *testing.B) {
	nodes := make([]*corev1.Node, 1000)
	var s Stripper
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range nodes {
		stripped, err := s.Strip(large(i))
		if err != nil {
			b.Fatal(err)
		}
		nodes[i] = stripped.(*corev1.Node)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	node := large(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Strip(node); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(nodes)), "bytes/node")
	runtime.KeepAlive(nodes)
}

// large is a node with 25 labels, an ownership record and the kubelet's conditions.
func large(i int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i>>8, i&255), UID: "0b1f8a3e-7f39-4c6f-9d0e-3f3c53c0f6d1", ResourceVersion: "123456",
		Labels:      map[string]string{corev1.LabelHostname: fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i>>8, i&255)},
		Annotations: map[string]string{"readygate.dev/hold-0b1f8a3e-7f39-4c6f-9d0e-3f3c53c0f6d1": fmt.Sprintf(`{"rule":"network","since":"2026-01-01T00:00:%02dZ"}`, i%60)},
	}}
	for k := range 24 {
		node.Labels[fmt.Sprintf("feature.node.example.com/cpu-feature.%02d", k)] = "true"
	}
	for _, condition := range []corev1.NodeConditionType{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready", "NetworkUnavailable", "example.com/NetworkReady"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: condition, Status: "False", Message: strings.Repeat("word ", 10)})
	}
	node.Spec.Taints = []corev1.Taint{{Key: "readiness.k8s.io/network", Value: "pending", Effect: corev1.TaintEffectNoSchedule}}
	return node
}
