package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/rulebook"
)

// listRules are all rules; none where the CRD is gone.
func (r *run) listRules(ctx context.Context) ([]*v1alpha1.NodeReadinessRule, error) {
	var list v1alpha1.NodeReadinessRuleList
	if err := rulebook.ListLive(ctx, r.client, &list); err != nil {
		return nil, err
	}
	rules := make([]*v1alpha1.NodeReadinessRule, len(list.Items))
	for i := range list.Items {
		rules[i] = &list.Items[i]
	}
	return rules, nil
}

// deleteRules asks for the deletion of every rule. Their finalizers keep them until nodes are
// clean.
func (r *run) deleteRules(ctx context.Context) error {
	rules, err := r.listRules(ctx)
	if err != nil {
		return err
	}
	var failed failures
	for _, rule := range rules {
		if !rule.DeletionTimestamp.IsZero() {
			continue
		}
		err := r.client.Delete(ctx, rule, client.Preconditions{UID: &rule.UID})
		if err == nil {
			r.removed("rules", 1)
		}
		failed.add(rule.Name, client.IgnoreNotFound(err))
	}
	log.Info("Rules deleted", "rules", len(rules))
	return failed.err("rules")
}

// letRulesGo takes off every rule what says that Readygate enforces it. With --rules=delete it
// returns when there is no rule any more.
func (r *run) letRulesGo(ctx context.Context) error {
	seen := 0
	err := insist(ctx, func(ctx context.Context) error {
		for {
			rules, err := r.listRules(ctx)
			if err != nil {
				return err
			}
			seen = max(seen, len(rules))
			var failed failures
			for _, rule := range rules {
				failed.add(rule.Name, r.letGo(ctx, rule))
			}
			if len(failed.errs) > 0 || r.Rules == KeepRules || len(rules) == 0 {
				return failed.err("rules")
			}
		}
	})
	if err == nil && seen > 0 && r.Rules == KeepRules {
		r.stays(fmt.Sprintf("rules (%d) and their CRD, with completion records on nodes: another controller, or Readygate again, goes on with them (--rules=keep)", seen))
	}
	log.Info("Rules let go", "rules", seen, "mode", r.Rules, "complete", err == nil)
	return err
}

func (r *run) letGo(ctx context.Context, rule *v1alpha1.NodeReadinessRule) error {
	if err := r.clearStatus(ctx, rule); err != nil {
		return err
	}
	if err := r.dropFinalizer(ctx, rule); err != nil {
		return err
	}
	switch {
	case r.Rules == KeepRules:
		return nil
	case rule.DeletionTimestamp.IsZero(): // made since we deleted all
		return client.IgnoreNotFound(r.client.Delete(ctx, rule, client.Preconditions{UID: &rule.UID}))
	case len(rule.Finalizers) > 0:
		return fmt.Errorf("is deleted, but waits for finalizers of others: %s", strings.Join(rule.Finalizers, ", "))
	default:
		return nil
	}
}

// clearStatus removes from the status what is true only while somebody enforces the rule. What
// others wrote stays, and when Readygate first saw the rule: that is a memory of completions.
func (r *run) clearStatus(ctx context.Context, rule *v1alpha1.NodeReadinessRule) error {
	base := rule.DeepCopy()
	rule.Status = v1alpha1.NodeReadinessRuleStatus{
		TakenOverAt: base.Status.TakenOverAt,
		Conditions:  slices.DeleteFunc(slices.Clone(base.Status.Conditions), isOurs),
	}
	if equality.Semantic.DeepEqual(base.Status, rule.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, rule, locked(base)); err != nil {
		return wrap("clearing the status", err)
	}
	r.removed("statuses of rules", 1)
	return nil
}

func isOurs(condition metav1.Condition) bool {
	return slices.Contains([]string{v1alpha1.ConditionAccepted, v1alpha1.ConditionEnforced, v1alpha1.ConditionBirthsCovered, v1alpha1.ConditionReportersRun}, condition.Type)
}

func (r *run) dropFinalizer(ctx context.Context, rule *v1alpha1.NodeReadinessRule) error {
	base := rule.DeepCopy()
	if !controllerutil.RemoveFinalizer(rule, v1alpha1.Finalizer) {
		return nil
	}
	if err := r.client.Patch(ctx, rule, locked(base)); err != nil {
		return wrap("removing our finalizer", err)
	}
	r.removed("finalizers of rules", 1)
	return nil
}

// locked is a patch that fails if anything else changed the object: a merge patch replaces
// whole lists, others' finalizers and conditions among them.
func locked(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// wrap says what failed. A rule that is gone needs nothing.
func wrap(what string, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
