package births

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/coverage"
	"github.com/readygate/readygate/internal/policy"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/rulebook"
)

// conflictRetry is when a write that met another one is tried again from fresh state.
const conflictRetry = 100 * time.Millisecond

// Reconciler keeps the births policy in step with the rules. All fields are required.
type Reconciler struct {
	// Client writes the policy.
	Client client.Client
	// Live reads past any cache: what is not so any more must not be written again.
	Live     client.Reader
	Rules    *rulebook.Shelf
	Coverage *coverage.Coverage
}

// Reconcile looks at the policy and its binding, and writes the policy if it does not say
// what the rules ask for.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	found, err := r.look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	sight := coverage.Sight{Gap: found.gap, Wanted: policy.CompileBirths(book.Rules())}
	if found.policy == nil {
		r.Coverage.Saw(sight)
		return reconcile.Result{RequeueAfter: found.again}, found.refusal
	}
	sight.Stored = policy.ReadBirths(&found.policy.Spec)
	if sight.Wanted.Drops(sight.Stored) {
		if sight.Wanted, err = r.compileLive(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.Coverage.Saw(sight)
	result, err := r.write(ctx, found.policy, sight)
	return result, errors.Join(err, found.refusal)
}

// compileLive compiles the rules as they are now. A cache can be behind, and taking a rule
// out of the policy would uncover it while its status says that it is covered.
func (r *Reconciler) compileLive(ctx context.Context) (policy.Births, error) {
	var list v1alpha1.NodeReadinessRuleList
	if err := rulebook.ListLive(ctx, r.Live, &list); err != nil {
		return policy.Births{}, err
	}
	objs := make([]*v1alpha1.NodeReadinessRule, len(list.Items))
	for i := range list.Items {
		objs[i] = &list.Items[i]
	}
	return policy.CompileBirths(readiness.NewRulebook(objs).Rules()), nil
}

// write brings the policy up to date, whoever changed it: a rule, or somebody by hand.
func (r *Reconciler) write(ctx context.Context, obj *admissionv1.MutatingAdmissionPolicy, sight coverage.Sight) (reconcile.Result, error) {
	wanted := sight.Wanted.Spec()
	if equality.Semantic.DeepEqual(obj.Spec, wanted) {
		return reconcile.Result{}, nil
	}
	obj.Spec = wanted
	err := r.Client.Update(ctx, obj, client.DisableReadYourWritesConsistency) // nobody reads it from a cache
	switch {
	case err == nil:
		log.FromContext(ctx).Info("Policy written", "policy", obj.Name, "rules", len(sight.Wanted.Texts()))
		sight.Stored = sight.Wanted
		r.Coverage.Saw(sight)
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		sight.Gap = refused("write", err)
		r.Coverage.Saw(sight)
	}
	return reconcile.Result{}, fmt.Errorf("writing the policy: %w", err)
}
