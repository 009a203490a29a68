package admission

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/text"
)

// found is what there is of the policy.
type found struct {
	// policy is nil where there is none that may be written, and stored is what it says.
	policy *admissionv1.MutatingAdmissionPolicy
	stored admission.Compiled
	// gap is why the policy is not in force; nil if it is.
	gap *Gap
	// again is when to look again although nothing tells of a change; zero: never.
	again time.Duration
	// refusal is why something cannot be read; nil if it can.
	refusal error
}

// unread says that it is not known what the policy says.
func (f found) unread() bool { return f.policy == nil && f.refusal != nil }

// look finds the policy and reports whether it is in force.
func (r *Reconciler) look(ctx context.Context) (found, error) {
	var obj admissionv1.MutatingAdmissionPolicy
	switch err := r.get(ctx, &obj); {
	case meta.IsNoMatchError(err):
		return found{gap: gap(v1alpha1.ReasonAPIMissing, "this cluster has no MutatingAdmissionPolicy (Kubernetes 1.36 or newer): %s", r.Policy.Without), again: apiInterval}, nil
	case apierrors.IsNotFound(err):
		return found{gap: gap(v1alpha1.ReasonPolicyMissing, "there is no MutatingAdmissionPolicy %s: %s; %s", r.Policy.Name, r.install(), r.Policy.Without), again: lookInterval}, nil
	case apierrors.IsForbidden(err):
		return found{gap: r.refused("read", err), refusal: fmt.Errorf("reading the policy: %w", err)}, nil
	case err != nil:
		return found{}, fmt.Errorf("reading the policy: %w", err)
	case !admission.IsOurs(&obj):
		return found{stored: r.Policy.Read(&obj.Spec), again: lookInterval,
			gap: gap(v1alpha1.ReasonPolicyForeign, "the MutatingAdmissionPolicy %s does not carry the label %s: %s, and is left alone: delete it and %s; %s",
				r.Policy.Name, admission.PartOfLabel, admission.PartOf, r.install(), r.Policy.Without)}, nil
	}
	return r.lookAtBinding(ctx, found{policy: &obj, stored: r.Policy.Read(&obj.Spec)})
}

// lookAtBinding adds why the policy is not in force, if it is not.
func (r *Reconciler) lookAtBinding(ctx context.Context, f found) (found, error) {
	var obj admissionv1.MutatingAdmissionPolicyBinding
	switch err := r.get(ctx, &obj); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		f.gap = gap(v1alpha1.ReasonBindingMissing, "there is no MutatingAdmissionPolicyBinding %s: %s; %s", r.Policy.Name, r.Policy.Install, r.Policy.Without)
	case apierrors.IsForbidden(err):
		f.gap, f.refusal = r.refused("read", err), fmt.Errorf("reading the binding: %w", err)
	case err != nil:
		return f, fmt.Errorf("reading the binding: %w", err)
	case !equality.Semantic.DeepEqual(obj.Spec, r.Policy.Binding.Spec):
		f.gap = gap(v1alpha1.ReasonBindingForeign, "the MutatingAdmissionPolicyBinding %s is not the one that Readygate installs: delete it and %s; %s", r.Policy.Name, r.Policy.Install, r.Policy.Without)
	}
	return f, nil
}

func (r *Reconciler) get(ctx context.Context, obj client.Object) error {
	return r.Live.Get(ctx, types.NamespacedName{Name: r.Policy.Name}, obj)
}

// install is how an administrator installs the policy.
func (r *Reconciler) install() string {
	if r.Manual {
		return "run " + ApplyCommand
	}
	return r.Policy.Install
}

func gap(reason, format string, args ...any) *Gap {
	return &Gap{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (r *Reconciler) refused(what string, err error) *Gap {
	return gap(v1alpha1.ReasonWriteRefused, "the API server refuses to %s the policy %s: a role or a policy must change; %s", what, r.Policy.Name, text.Cut(err.Error(), text.Event))
}
