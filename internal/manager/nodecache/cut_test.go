package nodecache_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
	"sigs.k8s.io/randfill"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/nodecache"
)

var (
	wire = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	raw  = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
)

func encode(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	var data bytes.Buffer
	if err := wire.Encode(obj, &data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func decode(t testing.TB, data []byte) runtime.Object {
	t.Helper()
	obj, _, err := wire.Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// filled is a node with something in every field.
func filled(filler *randfill.Filler) *corev1.Node {
	n := &corev1.Node{}
	filler.Fill(n)
	n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	if n.Annotations != nil && len(n.Name)%2 == 0 {
		n.Annotations[v1alpha1.HoldPrefix+n.Name] = n.Name
	}
	return n
}

func newFiller(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.2).NumElements(0, 4).MaxDepth(12).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(4e9), 0) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = *metav1.NewFieldsV1(`{"f:a":{}}`) },
	)
}

// Cut nodes have exactly the fields that the cache keeps.
func TestCuttingKeepsWhatTheCacheKeeps(t *testing.T) {
	strip := func(obj runtime.Object) any {
		stripped, err := (&nodecache.Stripper{}).Strip(obj)
		if err != nil {
			t.Fatal(err)
		}
		return stripped
	}
	filler := newFiller(1)
	for range 2000 {
		data := encode(t, filled(filler))
		whole, part := decode(t, data), decode(t, nodecache.Cut(data)).(*corev1.Node)
		if want, got := strip(whole), strip(part); !reflect.DeepEqual(want, got) {
			t.Fatalf("kept %+v\nwant %+v", got, want)
		}
		if !reflect.DeepEqual(part.Spec, whole.(*corev1.Node).Spec) {
			t.Fatalf("the spec is %+v\nwant %+v", part.Spec, whole.(*corev1.Node).Spec)
		}
		for key := range part.Annotations {
			if key != "" && !noderule.IsOurs(key) {
				t.Fatalf("the annotation %s is not needed", key)
			}
		}
		if part.ManagedFields != nil || !reflect.DeepEqual(part.Status, corev1.NodeStatus{Conditions: part.Status.Conditions, NodeInfo: corev1.NodeSystemInfo{BootID: part.Status.NodeInfo.BootID}}) {
			t.Fatalf("not cut completely: %+v", part)
		}
	}
}

func TestListsAreCut(t *testing.T) {
	filler := newFiller(2)
	list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}}
	for range 3 {
		list.Items = append(list.Items, *filled(filler))
	}
	part := decode(t, nodecache.Cut(encode(t, list))).(*corev1.NodeList)
	if len(part.Items) != 3 || part.ListMeta != list.ListMeta {
		t.Fatalf("got %d nodes, %+v", len(part.Items), part.ListMeta)
	}
	for i, n := range part.Items {
		if n.Name != list.Items[i].Name || n.Status.Images != nil {
			t.Errorf("node %d: %+v", i, n)
		}
	}
}

func TestOtherObjectsAreNotCut(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "b"}}}}
	other := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "b"}}}}
	for name, data := range map[string][]byte{"a pod": encode(t, pod), "another API's Node": encode(t, other), "JSON": []byte(`{"kind":"Node"}`), "nothing": nil, "only the magic": []byte("k8s\x00")} {
		if got := nodecache.Cut(data); !bytes.Equal(got, data) {
			t.Errorf("%s: %q became %q", name, data, got)
		}
	}
}

// A buffer is reused, and objects that were decoded from it do not change.
func TestDecodedNodesDoNotShareTheBuffer(t *testing.T) {
	serializer, filler := nodecache.Through(wire), newFiller(3)
	var kept, want []*corev1.Node
	for range 200 {
		data := encode(t, filled(filler))
		obj, _, err := serializer.Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept, want = append(kept, obj.(*corev1.Node)), append(want, decode(t, nodecache.Cut(data)).(*corev1.Node))
	}
	if !reflect.DeepEqual(kept, want) {
		t.Error("decoded nodes changed when the buffer was reused")
	}
}

// Truncated data is not changed: the decoder returns the error.
func TestBrokenDataIsLeftAsItIs(t *testing.T) {
	data := encode(t, realistic())
	for i := len("k8s\x00"); i < len(data); i++ {
		if got := nodecache.Cut(data[:i]); len(got) > i {
			t.Fatalf("%d bytes became %d", i, len(got))
		}
	}
}

func FuzzCut(f *testing.F) {
	small := realistic() // a large input would be minimized for a minute, repeatedly
	small.Labels, small.Annotations, small.ManagedFields, small.Status.Images, small.Status.Conditions = nil, nil, nil, small.Status.Images[:1], small.Status.Conditions[:1]
	f.Add(encode(f, small))
	f.Add([]byte("k8s\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out := nodecache.Cut(data)
		if len(out) > len(data) {
			t.Errorf("%d bytes became %d", len(data), len(out))
		}
		if again := nodecache.Cut(out); !bytes.Equal(again, out) {
			t.Errorf("cut twice, it is %q, was %q", again, out)
		}
	})
}

// realistic is a node as the kubelet of a cloud instance reports it.
func realistic() *corev1.Node {
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
	n.Name, n.Labels = "worker-1", map[string]string{}
	for i := range 25 {
		n.Labels[fmt.Sprint("example.com/label-", i)] = fmt.Sprint("value-", i)
	}
	n.Annotations = map[string]string{v1alpha1.HoldPrefix + "e1f5bf9a-0d3c-4a6a-9d62-0d6e5cf0a001": `{"rule":"a","taint":"readiness.k8s.io/a:NoSchedule","origin":"added"}`}
	for i := range 15 {
		n.Annotations[fmt.Sprint("example.com/annotation-", i)] = strings.Repeat("x", 60)
	}
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 3000))}}
	for i := range 50 {
		name := fmt.Sprintf("registry.example.com/project/image-%d", i)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", name + ":v1.2.3"}, SizeBytes: 1e8})
	}
	for _, condition := range []corev1.NodeConditionType{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready", "example.com/NetworkReady"} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: condition, Status: corev1.ConditionTrue, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available", LastHeartbeatTime: metav1.NewTime(time.Unix(2e9, 0))})
	}
	return n
}

// A frame of a watch decodes to the same as the whole frame, except for what is cut.
func TestFramesAreCut(t *testing.T) {
	filler := newFiller(4)
	for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark} {
		n := filled(filler)
		got, obj, err := receiver(frame(t, event, n), true).Decode()
		if want := decode(t, nodecache.Cut(encode(t, n))); err != nil || got != event || !reflect.DeepEqual(obj, want) {
			t.Errorf("%s: got %s %+v, %v\nwant %+v", event, got, obj, err, want)
		}
	}
	end := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	if _, obj, err := receiver(frame(t, watch.Bookmark, end), true).Decode(); err != nil || !reflect.DeepEqual(obj, end) {
		t.Errorf("the end of the first list: got %+v, %v\nwant %+v", obj, err, end)
	}
	gone := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410, Message: "too old"}
	got, obj, err := receiver(frame(t, watch.Error, gone), true).Decode()
	if status, ok := obj.(*metav1.Status); err != nil || got != watch.Error || !ok || status.Code != 410 {
		t.Errorf("got %s %+v, %v", got, obj, err)
	}
}

// A truncated frame is an error with and without cutting.
func TestBrokenFramesAreErrors(t *testing.T) {
	whole := frame(t, watch.Modified, realistic())
	for i := range whole {
		_, _, want := receiver(whole[:i], false).Decode()
		if _, _, err := receiver(whole[:i], true).Decode(); (err == nil) != (want == nil) {
			t.Fatalf("%d of %d bytes: got %v, without cutting %v", i, len(whole), err, want)
		}
	}
}

// frame is the frame of a watch event.
func frame(t testing.TB, event watch.EventType, obj runtime.Object) []byte {
	t.Helper()
	data, err := (&metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: encode(t, obj)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// one is a watch that returns the same frame repeatedly.
type one struct {
	serializer runtime.Serializer
	frame      []byte
}

func (o one) Decode(defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return o.serializer.Decode(o.frame, defaults, into)
}

func (one) Close() error { return nil }

// receiver decodes frames as the client does, with or without cutting.
func receiver(frame []byte, cut bool) *restwatch.Decoder {
	if cut {
		return restwatch.NewDecoder(one{nodecache.Frames(raw), frame}, nodecache.Through(wire))
	}
	return restwatch.NewDecoder(one{raw, frame}, wire)
}

// BenchmarkDecode measures one watch event, with and without cutting.
func BenchmarkDecode(b *testing.B) {
	data := frame(b, watch.Modified, realistic())
	for name, cut := range map[string]bool{"whole": false, "cut": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			events := receiver(data, cut)
			for b.Loop() {
				if _, _, err := events.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
