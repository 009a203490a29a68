package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

// deleteRules deletes all rules of a kind. Their finalizers keep them until nodes or pods are clean.
func (r *run) deleteRules(ctx context.Context, kind ruleKind) error {
	seen, err := r.eachRule(ctx, kind, func(rule client.Object) error {
		if !rule.GetDeletionTimestamp().IsZero() {
			return nil
		}
		err := r.deleteRule(ctx, rule)
		if err == nil {
			r.removed(kind.what, 1)
		}
		return client.IgnoreNotFound(err)
	})
	log.Info("Rules deleted", "kind", kind.what, "rules", seen)
	return err
}

// eachRule visits all rules of a kind. The failure of one rule does not stop the others.
func (r *run) eachRule(ctx context.Context, kind ruleKind, visit func(rule client.Object) error) (seen int, err error) {
	rules, err := rulecache.ListLiveObjects(ctx, r.client, kind.newList())
	var failed failures
	for _, rule := range rules {
		failed.add(rule.GetName(), visit(rule))
	}
	return len(rules), errors.Join(err, failed.err(kind.what))
}

func (r *run) deleteRule(ctx context.Context, rule client.Object) error {
	uid := rule.GetUID()
	return r.client.Delete(ctx, rule, client.Preconditions{UID: &uid})
}

// releaseRules removes Readygate's finalizer and status from all rules. With --rules=delete it returns when no rule
// exists anymore.
func (r *run) releaseRules(ctx context.Context, kind ruleKind) error {
	seen := 0
	err := retry(ctx, func(ctx context.Context) error {
		for {
			left, err := r.eachRule(ctx, kind, func(rule client.Object) error { return r.releaseRule(ctx, kind, rule) })
			seen = max(seen, left)
			if err != nil || r.Rules == KeepRules || left == 0 {
				return err
			}
		}
	})
	if err == nil && seen > 0 && r.Rules == KeepRules {
		r.stays(fmt.Sprintf("%s (%d) and %s", kind.what, seen, kind.kept))
	}
	log.Info("Finalizers and statuses of rules removed", "kind", kind.what, "rules", seen, "mode", r.Rules, "complete", err == nil)
	return err
}

func (r *run) releaseRule(ctx context.Context, kind ruleKind, rule client.Object) error {
	if err := r.clearStatus(ctx, kind, rule); err != nil {
		return err
	}
	if err := r.dropFinalizer(ctx, kind, rule); err != nil {
		return err
	}
	switch {
	case r.Rules == KeepRules:
		return nil
	case rule.GetDeletionTimestamp().IsZero(): // created after deleteRules
		return client.IgnoreNotFound(r.deleteRule(ctx, rule))
	case len(rule.GetFinalizers()) > 0:
		return fmt.Errorf("is being deleted, but has finalizers of other controllers: %s", strings.Join(rule.GetFinalizers(), ", "))
	default:
		return nil
	}
}

func (r *run) clearStatus(ctx context.Context, kind ruleKind, rule client.Object) error {
	base := rule.DeepCopyObject().(client.Object)
	kind.clear(rule)
	if equality.Semantic.DeepEqual(base, rule) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, rule, rulecache.Locked(base)); err != nil {
		return wrap("clearing the status", err)
	}
	r.removed("statuses of "+kind.what, 1)
	return nil
}

// removeSoleController removes the condition that a waiting manager sets on rules that another controller enforces.
func (r *run) removeSoleController(ctx context.Context, kind ruleKind) error {
	kind.clear = func(obj client.Object) {
		status := &obj.(*nodev1alpha1.NodeReadinessRule).Status
		status.Conditions = without(status.Conditions, nodev1alpha1.ConditionSoleController)
	}
	_, err := r.eachRule(ctx, kind, func(rule client.Object) error { return r.clearStatus(ctx, kind, rule) })
	return err
}

func (r *run) dropFinalizer(ctx context.Context, kind ruleKind, rule client.Object) error {
	base := rule.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(rule, kind.finalizer) {
		return nil
	}
	if err := r.client.Patch(ctx, rule, rulecache.Locked(base)); err != nil {
		return wrap("removing the finalizer", err)
	}
	r.removed("finalizers of "+kind.what, 1)
	return nil
}

// wrap adds context to an error. A rule that does not exist needs no write.
func wrap(what string, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
