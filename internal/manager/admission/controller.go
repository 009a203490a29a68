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
)

const (
	// conflictRetry is when a write that met another one is tried again from fresh state.
	conflictRetry = 100 * time.Millisecond

	// writeInterval is the least time between two writes. API servers look for a change of
	// the policy once a second, and compile all of it then.
	writeInterval = time.Second

	// lookInterval is when to look although nobody tells of a change: who may not watch, or
	// whose watch ended for good, is not told.
	lookInterval = 10 * time.Minute
)

// Policy is a policy whose text is compiled from rules. All fields are required.
type Policy struct {
	Name string
	// Compile compiles the rules that the cache has, and CompileLive those that there are now.
	Compile, CompileLive func(context.Context) (admission.Compiled, error)
	// Spec is the policy of what was compiled, and Read what a stored one says.
	Spec func(admission.Compiled) admissionv1.MutatingAdmissionPolicySpec
	Read func(*admissionv1.MutatingAdmissionPolicySpec) admission.Compiled
	// Binding is what puts it in force.
	Binding *admissionv1.MutatingAdmissionPolicyBinding
	// Install says how it is installed, and Without what becomes of objects where the policy is not in force.
	Install, Without string
	// Rule is the kind of the rules, and Same reports whether two mean the same.
	Rule client.Object
	Same func(before, after client.Object) bool
}

// Reconciler keeps a policy in step with the rules. All exported fields are required.
type Reconciler struct {
	Policy Policy
	// Manual is set where an administrator applies the policy: the reconciler compares and never writes.
	Manual  bool
	Metrics *Metrics
	// Client writes the policy.
	Client client.Client
	// Live reads past any cache: what is not so any more must not be written again.
	Live     client.Reader
	Coverage *Coverage
	Clock    clock.PassiveClock

	// written is when the policy was last written, and refusal why that was refused.
	written time.Time
	refusal *Gap
}

// Reconcile looks at the policy and its binding, and writes the policy if it does not say
// what the rules ask for.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	wanted, err := r.Policy.Compile(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	found, err := r.look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	sight := Sight{Gap: found.gap, Unread: found.unread(), Stored: found.stored, Wanted: wanted, Manual: r.Manual}
	if found.policy == nil {
		r.Metrics.forget(r.Policy.Name)
		r.Coverage.Saw(sight)
		return reconcile.Result{RequeueAfter: found.again}, found.refusal
	}
	if !r.Manual && sight.Wanted.Drops(sight.Stored) {
		// A cache can be behind, and taking a rule out of the policy would uncover it while its
		// status says that it is covered.
		if sight.Wanted, err = r.Policy.CompileLive(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	result, err := r.bringUpToDate(ctx, found.policy, sight)
	return result, errors.Join(err, found.refusal)
}

// bringUpToDate writes the policy if it does not say what the rules ask for, whoever changed
// it: a rule, or somebody by hand. With Manual it writes nothing. What is stored is remembered before: what was edited and
// is put back has to settle again.
func (r *Reconciler) bringUpToDate(ctx context.Context, obj *admissionv1.MutatingAdmissionPolicy, sight Sight) (reconcile.Result, error) {
	wanted, before := r.Policy.Spec(sight.Wanted), sight
	same := equality.Semantic.DeepEqual(obj.Spec, wanted)
	r.Metrics.compared(obj.Name, same)
	if same || r.Manual {
		r.refusal = nil
		r.Coverage.Saw(sight)
		return reconcile.Result{RequeueAfter: lookInterval}, nil
	}
	if before.Gap == nil {
		before.Gap = r.refusal // until a write succeeds
	}
	r.Coverage.Saw(before)
	if wait := writeInterval - r.Clock.Since(r.written); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	obj.Spec = wanted
	return r.write(ctx, obj, sight)
}

func (r *Reconciler) write(ctx context.Context, obj *admissionv1.MutatingAdmissionPolicy, sight Sight) (reconcile.Result, error) {
	start := r.Clock.Now()
	err := r.Client.Update(ctx, obj, client.DisableReadYourWritesConsistency) // nobody reads it from a cache
	switch {
	case err == nil:
		log.FromContext(ctx).Info("Policy written", "policy", obj.Name, "rules", len(sight.Wanted.Texts()))
		r.written, r.refusal = r.Clock.Now(), nil
		r.Metrics.compared(obj.Name, true)
		sight.Stored, sight.Took = sight.Wanted, r.Clock.Since(start)
		r.Coverage.Saw(sight)
		return reconcile.Result{RequeueAfter: lookInterval}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		r.refusal = r.refused("write", err)
		sight.Gap = r.refusal
		r.Coverage.Saw(sight)
	}
	return reconcile.Result{}, fmt.Errorf("writing the policy: %w", err)
}
