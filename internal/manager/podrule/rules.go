package podrule

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Rules are all rules that a reader has, compiled, oldest first.
func Rules(ctx context.Context, from client.Reader) ([]*podrule.Rule, error) {
	var list v1alpha1.PodReadinessRuleList
	if err := from.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("reading the rules for pods: %w", err)
	}
	objs := make([]*v1alpha1.PodReadinessRule, len(list.Items))
	for i := range list.Items {
		objs[i] = &list.Items[i]
	}
	return podrule.NewRules(objs), nil
}

// Same says whether two rules ask for the same.
func Same(before, after client.Object) bool {
	return before.GetUID() == after.GetUID() && before.GetGeneration() == after.GetGeneration() &&
		(before.GetDeletionTimestamp() == nil) == (after.GetDeletionTimestamp() == nil)
}
