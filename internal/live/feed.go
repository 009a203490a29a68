package live

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Put brings rules and nodes of this state into a fleet that follows no cluster. Other kinds
// are none of its business. The fleet keeps the objects: they are not to be changed any more.
func (f *Fleet) Put(objects ...client.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeReadinessRule:
			f.putRule(o)
		case *corev1.Node:
			f.putNode(o)
		}
	}
}

// Drop takes rules and nodes out again.
func (f *Fleet) Drop(objects ...client.Object) {
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeReadinessRule:
			f.dropRule(o)
		case *corev1.Node:
			f.dropNode(o)
		}
	}
}
