package demo

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// leftovers are the kinds of things that a killed demo can leave in a cluster, in the order in
// which they are taken back. What is in a namespace of the demo's goes with that.
func leftovers() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.NodeReadinessRuleList{}, &podv1alpha1.PodReadinessRuleList{},
		&corev1.NodeList{}, // so that no pod can run there
		&appsv1.DeploymentList{}, &appsv1.DaemonSetList{},
		&admissionv1.ValidatingAdmissionPolicyBindingList{}, &admissionv1.ValidatingAdmissionPolicyList{},
		&admissionv1.MutatingAdmissionPolicyBindingList{}, &admissionv1.MutatingAdmissionPolicyList{},
		&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{},
		&corev1.ServiceAccountList{}, &corev1.NamespaceList{},
		&apiextensionsv1.CustomResourceDefinitionList{},
	}
}

// clean takes back what a demo that was killed has left in the cluster that KUBECONFIG names. It
// is found by its label; nothing else is touched.
func (s *show) clean(ctx context.Context) error {
	stage, named, err := stageIn(s.dir)
	if err != nil {
		return err
	}
	s.teller.say(fmt.Sprintf("Taking back what a demo has left in the cluster of context %q.", named))
	var nodes []string
	for _, list := range leftovers() {
		if _, last := list.(*corev1.NamespaceList); last { // nobody plays the kubelet of these pods any more
			if err := stage.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(Namespace), client.GracePeriodSeconds(0)); err != nil {
				return err
			}
		}
		if err := stage.client.List(ctx, list, client.MatchingLabels{madeLabel: "true"}); gone(err) {
			continue
		} else if err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			if isA[*corev1.Node](obj) {
				nodes = append(nodes, obj.GetName())
			}
			s.teller.say("  " + stage.describe(obj))
			stage.remember(obj)
			return stage.release(ctx, obj)
		})
		if err != nil {
			return err
		}
		if err := stage.remove(ctx, anything); err != nil {
			return err
		}
	}
	if err := stage.deleteLeases(ctx, nodes); err != nil {
		return err
	}
	s.teller.say("Nothing of a demo is left in the cluster.")
	return nil
}

// release lets a rule go whose manager is dead: what it put on nodes and pods goes with them.
func (s *stage) release(ctx context.Context, obj client.Object) error {
	if !isA[*v1alpha1.NodeReadinessRule](obj) && !isPodRule(obj) || len(obj.GetFinalizers()) == 0 {
		return nil
	}
	before := obj.DeepCopyObject().(client.Object)
	obj.SetFinalizers(nil)
	return client.IgnoreNotFound(s.client.Patch(ctx, obj, client.MergeFrom(before)))
}
