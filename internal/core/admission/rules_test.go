package admission_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// updatedRule is the change of a rule.
func updatedRule(old, rule *v1alpha1.NodeReadinessRule) request {
	return request{
		kind: v1alpha1.GroupVersion.WithKind("NodeReadinessRule"), resource: "nodereadinessrules", operation: apiadmission.Update,
		object: rule, old: old,
	}
}

// The policy refuses the manager and the cleanup every change of a rule but that of their finalizer, and
// ignores what the API server sets itself. It does not match other accounts.
func TestTheManagerAndTheCleanupChangeOnlyTheirFinalizerOnRules(t *testing.T) {
	v := newValidator(t, admission.Rules().Spec)
	type ruleOption = func(*v1alpha1.NodeReadinessRule)
	finalizers := func(names ...string) ruleOption {
		return func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = names }
	}
	const other = "example.com/keep"
	for name, c := range map[string]struct {
		before, change ruleOption
		refused        string // what may not be changed
	}{
		"nothing":                           {change: func(*v1alpha1.NodeReadinessRule) {}},
		"the first finalizer":               {change: finalizers(v1alpha1.Finalizer)},
		"a finalizer added to another's":    {before: finalizers(other), change: finalizers(other, v1alpha1.Finalizer)},
		"a finalizer removed from the list": {before: finalizers(v1alpha1.Finalizer, other), change: finalizers(other)},
		"the last finalizer removed":        {before: finalizers(v1alpha1.Finalizer), change: finalizers()},
		"what the API server sets": {change: func(r *v1alpha1.NodeReadinessRule) {
			r.ResourceVersion, r.Generation, r.ManagedFields = "2", 2, []metav1.ManagedFieldsEntry{{Manager: "manager"}}
		}},

		"another's finalizer removed": {before: finalizers(v1alpha1.Finalizer, other), change: finalizers(), refused: "finalizers of other controllers"},
		"another's finalizer added":   {change: finalizers(other, v1alpha1.Finalizer), refused: "finalizers of other controllers"},
		"the spec":                    {change: func(r *v1alpha1.NodeReadinessRule) { r.Spec.DryRun = true }, refused: "spec"},
		"a label":                     {change: func(r *v1alpha1.NodeReadinessRule) { r.Labels = map[string]string{"a": "b"} }, refused: "metadata.labels"},
		"an annotation":               {change: func(r *v1alpha1.NodeReadinessRule) { r.Annotations = map[string]string{"a": "b"} }, refused: "metadata.annotations"},
		"an owner":                    {change: func(r *v1alpha1.NodeReadinessRule) { r.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, refused: "metadata.ownerReferences"},
		"the spec and a label": {change: func(r *v1alpha1.NodeReadinessRule) {
			r.Spec.DryRun, r.Labels = true, map[string]string{"a": "b"}
		}, refused: "spec, metadata.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.refused != "" {
				want = []string{fmt.Sprintf("the manager and the cleanup may add and remove their finalizer on rules, and not change %s (including changes by another policy or webhook in the same request)", c.refused)}
			}
			old := rule("network")
			if c.before != nil {
				c.before(old)
			}
			changed := old.DeepCopy()
			c.change(changed)
			for _, user := range []string{admission.ManagerUser, admission.CleanupUser} {
				wantEqual(t, "refused to "+user, v.refuses(t, updatedRule(old, changed).by(user)), want)
			}
			for _, user := range []string{"kubernetes-admin", admission.PodgateUser, "system:serviceaccount:other:" + admission.ManagerAccount, ""} {
				wantEqual(t, "refused to "+user, v.refuses(t, updatedRule(old, changed).by(user)), nil)
			}
		})
	}
}
