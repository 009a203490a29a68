package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
)

const (
	// conflictRetry is the delay after a conflict. The policy is then reconciled from fresh state.
	conflictRetry = 100 * time.Millisecond

	// writeInterval is the minimum time between two writes. API servers check the policy for changes once per second, and
	// then compile all of it.
	writeInterval = time.Second

	// resyncInterval is the time to the next reconcile without an event: a watch may be forbidden, or have ended.
	resyncInterval = 10 * time.Minute
)

// Policy is a policy whose text is compiled from rules. All fields are required.
type Policy struct {
	Name string
	// Compile compiles the rules of the cache, and CompileLive those of the API server.
	Compile, CompileLive func(context.Context) (admission.Compiled, error)
	// Spec returns the policy of compiled rules, and Read the compiled rules of a stored policy.
	Spec func(admission.Compiled) admissionv1.MutatingAdmissionPolicySpec
	Read func(*admissionv1.MutatingAdmissionPolicySpec) admission.Compiled
	// Binding is the binding of the policy, as Readygate installs it.
	Binding *admissionv1.MutatingAdmissionPolicyBinding
	// Install is how to install the policy, and Without what happens to new objects without it. Both are part of
	// messages.
	Install, Without string
	// Rule is the kind of the rules. Same reports whether two versions of a rule compile to the same policy.
	Rule client.Object
	Same func(before, after client.Object) bool
}

// Reconciler updates a policy when the rules change. All exported fields are required.
type Reconciler struct {
	Policy Policy
	// Manual is true if an administrator applies the policy: the reconciler compares and never writes.
	Manual   bool
	Metrics  *Metrics
	Coverage *Coverage
	Clock    clock.PassiveClock

	// client reads and writes the policy, and finds its served version. It has no cache: a stale policy must not be written
	// again.
	client mutatingpolicy.Client

	// written is the time of the last write, and refusal why that write was rejected.
	written time.Time
	refusal *Gap
}

// Reconcile reads the policy and its binding, and writes the policy if it differs from the rules.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	wanted, err := r.Policy.Compile(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	found, err := r.readState(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	state := State{Gap: found.gap, Unread: found.unread(), Stored: found.stored, Wanted: wanted, Manual: r.Manual}
	if found.policy == nil {
		r.Metrics.forget(r.Policy.Name)
		r.Coverage.Observe(state)
		return reconcile.Result{RequeueAfter: found.again}, found.refusal
	}
	if !r.Manual && state.Wanted.Drops(state.Stored) {
		// A stale cache must not remove a rule from the policy: its status would still be covered.
		if state.Wanted, err = r.Policy.CompileLive(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	result, err := r.bringUpToDate(ctx, found.policy, state)
	return result, errors.Join(err, found.refusal)
}

// bringUpToDate writes the policy if it differs from the rules, whether a rule or the policy was edited. With Manual it
// writes nothing. It records the stored policy first: an edited part that is restored has to settle again.
func (r *Reconciler) bringUpToDate(ctx context.Context, obj *admissionv1.MutatingAdmissionPolicy, state State) (reconcile.Result, error) {
	wanted, before := r.Policy.Spec(state.Wanted), state
	same := equality.Semantic.DeepEqual(obj.Spec, wanted)
	r.Metrics.compared(obj.Name, same)
	if same || r.Manual {
		r.refusal = nil
		r.Coverage.Observe(state)
		return reconcile.Result{RequeueAfter: resyncInterval}, nil
	}
	if before.Gap == nil {
		before.Gap = r.refusal // until a write succeeds
	}
	r.Coverage.Observe(before)
	if wait := writeInterval - r.Clock.Since(r.written); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	obj.Spec = wanted
	return r.write(ctx, obj, state)
}

func (r *Reconciler) write(ctx context.Context, obj *admissionv1.MutatingAdmissionPolicy, state State) (reconcile.Result, error) {
	start := r.Clock.Now()
	err := r.client.Update(ctx, obj)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("Policy written", "policy", obj.Name, "rules", len(state.Wanted.Texts()))
		r.written, r.refusal = r.Clock.Now(), nil
		r.Metrics.compared(obj.Name, true)
		state.Stored, state.Took = state.Wanted, r.Clock.Since(start)
		r.Coverage.Observe(state)
		return reconcile.Result{RequeueAfter: resyncInterval}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		r.refusal = r.refused("write", err)
		state.Gap = r.refusal
		r.Coverage.Observe(state)
	}
	return reconcile.Result{}, fmt.Errorf("writing the policy: %w", err)
}
