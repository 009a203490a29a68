package live

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// Put brings rules, nodes, namespaces and pods of this state into a fleet that follows no cluster;
// pods are looked at for their gates only. Other kinds are none of its business. The fleet keeps the
// objects: they are not to be changed any more.
func (f *Fleet) Put(objects ...client.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeReadinessRule:
			f.putRule(o)
		case *corev1.Node:
			f.putNode(o)
		case *podv1alpha1.PodReadinessRule:
			f.putPodRule(o)
		case *corev1.Namespace:
			f.putNamespace(o)
		case *corev1.Pod:
			f.putGated(o)
		}
	}
}

// Drop takes them out again.
func (f *Fleet) Drop(objects ...client.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeReadinessRule:
			f.dropRule(o)
		case *corev1.Node:
			f.dropNode(o)
		case *podv1alpha1.PodReadinessRule:
			f.dropPodRule(o)
		case *corev1.Namespace:
			f.dropNamespace(o)
		case *corev1.Pod:
			f.dropGated(o)
		}
	}
}
