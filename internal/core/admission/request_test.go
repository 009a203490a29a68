package admission_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"pgregory.net/rapid"
)

// request is a request to the API server.
type request struct {
	kind        schema.GroupVersionKind
	resource    string
	subresource string
	namespace   string
	operation   apiadmission.Operation
	// old is nil if the object is being created.
	object, old runtime.Object
	params      runtime.Object
	user        user.DefaultInfo
}

var options = map[apiadmission.Operation]runtime.Object{
	apiadmission.Create: &metav1.CreateOptions{}, apiadmission.Update: &metav1.UpdateOptions{}, apiadmission.Delete: &metav1.DeleteOptions{},
}

func (r request) attributes() *apiadmission.VersionedAttributes {
	record := apiadmission.NewAttributesRecord(r.object, r.old, r.kind, r.namespace, "n", r.gvr(), r.subresource, r.operation, options[r.operation], false, &r.user)
	return &apiadmission.VersionedAttributes{
		Attributes: record, VersionedKind: r.kind,
		VersionedObject: apiadmission.NewLazyObject(r.object), VersionedOldObject: apiadmission.NewLazyObject(r.old),
	}
}

func (r request) gvr() schema.GroupVersionResource {
	return r.kind.GroupVersion().WithResource(r.resource)
}

// untyped is the request as API servers before 1.37 show it to CEL.
func (r request) untyped(t rapid.TB) request {
	t.Helper()
	r.object, r.old = untyped(t, r.object), untyped(t, r.old)
	return r
}

func untyped(t rapid.TB, object runtime.Object) runtime.Object {
	t.Helper()
	if object == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// created is the creation of a node by a user of these groups.
func created(node *corev1.Node, groups ...string) request {
	node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	return request{
		kind: corev1.SchemeGroupVersion.WithKind("Node"), resource: "nodes", operation: apiadmission.Create, object: node,
		user: user.DefaultInfo{Name: "alice", Groups: groups},
	}
}

// updated is the update of a node by a user of these groups.
func updated(old, node *corev1.Node, groups ...string) request {
	r := created(node, groups...)
	old.TypeMeta = node.TypeMeta
	r.operation, r.old = apiadmission.Update, old
	return r
}

// removed is the deletion of a node.
func removed(node *corev1.Node) request {
	r := created(node)
	r.operation, r.object, r.old = apiadmission.Delete, nil, node
	return r
}

// connected is a connection to a node's kubelet.
func connected() request {
	r := created(&corev1.Node{}).of("proxy")
	r.operation, r.object = apiadmission.Connect, &corev1.NodeProxyOptions{}
	return r
}

// by is the request of another user.
func (r request) by(name string) request {
	r.user.Name = name
	return r
}

// of is the same request for a part of the object.
func (r request) of(subresource string) request {
	r.subresource = subresource
	return r
}
