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

// found is the result of a reading of the policy and its binding.
type found struct {
	// policy is nil if no policy exists that the manager may write. stored has its compiled rules.
	policy *admissionv1.MutatingAdmissionPolicy
	stored admission.Compiled
	// gap is why the policy is not in force; nil if it is.
	gap *Gap
	// again is the time to the next reading without an event; zero: never.
	again time.Duration
	// refusal is why the policy or the binding cannot be read; nil if it can.
	refusal error
}

// unread reports whether the content of the policy is not known.
func (f found) unread() bool { return f.policy == nil && f.refusal != nil }

// readState reads the policy and its binding, and finds out whether the policy is in force.
func (r *Reconciler) readState(ctx context.Context) (found, error) {
	var obj admissionv1.MutatingAdmissionPolicy
	switch err := r.get(ctx, &obj); {
	case meta.IsNoMatchError(err):
		return found{gap: gap(v1alpha1.ReasonAPIMissing, "this cluster does not serve MutatingAdmissionPolicy (v1: Kubernetes 1.36 or newer; v1beta1: 1.34 and 1.35 if it is enabled): %s", r.Policy.Without), again: apiInterval}, nil
	case apierrors.IsNotFound(err):
		return found{gap: gap(v1alpha1.ReasonPolicyMissing, "there is no MutatingAdmissionPolicy %s: %s; %s", r.Policy.Name, r.install(), r.Policy.Without), again: resyncInterval}, nil
	case apierrors.IsForbidden(err):
		return found{gap: r.refused("read", err), refusal: fmt.Errorf("reading the policy: %w", err)}, nil
	case err != nil:
		return found{}, fmt.Errorf("reading the policy: %w", err)
	case !admission.IsOurs(&obj):
		return found{stored: r.Policy.Read(&obj.Spec), again: resyncInterval,
			gap: gap(v1alpha1.ReasonPolicyForeign, "the MutatingAdmissionPolicy %s lacks the label %s: %s, so the manager does not change it: delete it and %s; %s",
				r.Policy.Name, admission.PartOfLabel, admission.PartOf, r.install(), r.Policy.Without)}, nil
	}
	return r.readBinding(ctx, found{policy: &obj, stored: r.Policy.Read(&obj.Spec)})
}

// readBinding adds the gap if the binding is not as Readygate installs it.
func (r *Reconciler) readBinding(ctx context.Context, f found) (found, error) {
	var obj admissionv1.MutatingAdmissionPolicyBinding
	switch err := r.get(ctx, &obj); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		f.gap = gap(v1alpha1.ReasonBindingMissing, "there is no MutatingAdmissionPolicyBinding %s: %s; %s", r.Policy.Name, r.Policy.Install, r.Policy.Without)
	case apierrors.IsForbidden(err):
		f.gap, f.refusal = r.refused("read", err), fmt.Errorf("reading the binding: %w", err)
	case err != nil:
		return f, fmt.Errorf("reading the binding: %w", err)
	case !equality.Semantic.DeepEqual(obj.Spec, r.Policy.Binding.Spec):
		f.gap = gap(v1alpha1.ReasonBindingForeign, "the spec of the MutatingAdmissionPolicyBinding %s differs from the one that Readygate installs: delete it and %s; %s", r.Policy.Name, r.Policy.Install, r.Policy.Without)
	}
	return f, nil
}

func (r *Reconciler) get(ctx context.Context, obj client.Object) error {
	return r.client.Get(ctx, types.NamespacedName{Name: r.Policy.Name}, obj)
}

// install returns how an administrator installs the policy.
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
	return gap(v1alpha1.ReasonWriteRefused, "the API server rejected the request to %s the policy %s; fix the role or the admission policy that rejects it: %s", what, r.Policy.Name, text.Cut(err.Error(), text.Event))
}
