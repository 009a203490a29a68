package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/node"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/manager/ruletaints"
)

var allNodes = objectKind{
	name:    "node",
	newList: func() client.ObjectList { return &corev1.NodeList{} },
	stop:    "stop the manager that enforces the rules without the lease, e.g. one that runs outside of the cluster without --leader-elect",
}

// ruleTaints returns the taints of the rules that exist and of those in the list of rule taints. It is called before
// rules are deleted: a deleted rule without a finalizer is gone, and may be missing in the list.
func (r *run) ruleTaints(ctx context.Context) (noderule.RuleTaints, error) {
	taints := noderule.RuleTaints{}
	err := retry(ctx, func(ctx context.Context) error {
		rules, err := rulecache.NodeRules(ctx, r.client)
		if err != nil {
			return err
		}
		listed, _, err := ruletaints.Read(ctx, r.client, r.Namespace)
		maps.Copy(taints, listed)
		maps.Copy(taints, noderule.NewRulebook(rules).Taints()) // a rule overrides its entry
		return err
	})
	return taints, err
}

// sweepNodes removes all taints and records of rules from all nodes, except completion records of rules that stay. known
// has the taints of rules that may be deleted by now.
func (r *run) sweepNodes(ctx context.Context, known noderule.RuleTaints) error {
	return r.untilClean(ctx, allNodes, "Nodes swept", func(ctx context.Context) (visit, error) {
		rules, err := rulecache.NodeRules(ctx, r.client)
		if err != nil {
			return nil, err
		}
		// The rules come from the API server and no manager writes records: a rule that is not listed does not exist.
		book, now := noderule.NewRulebook(rules).Withdrawn(), time.Now()
		book.Listed = maps.Clone(known)
		maps.Copy(book.Listed, book.Taints())
		return r.settle(func(n *noderule.Node) *noderule.Plan { return book.Plan(n, now) }), nil
	})
}

// removeList deletes the list of rule taints. No node may carry a record of a rule then.
func (r *run) removeList(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		deleted, err := ruletaints.Delete(ctx, r.client, r.Namespace)
		if deleted {
			r.removed("lists of rule taints", 1)
		}
		return err
	})
}

// disownNodes removes Readygate's records from all nodes, and nothing else.
func (r *run) disownNodes(ctx context.Context) error {
	return r.untilClean(ctx, allNodes, "Records removed from nodes", func(context.Context) (visit, error) { return r.settle(noderule.Disown), nil })
}

func (r *run) settle(decide func(*noderule.Node) *noderule.Plan) visit {
	return func(ctx context.Context, obj client.Object) (bool, error) {
		plan, err := node.Settle(ctx, r.client, obj.(*corev1.Node), decide)
		r.unlisted(obj.GetName(), plan.Unlisted)
		for _, change := range plan.Changes {
			if change.Kind == noderule.Removed {
				r.removed("taints", 1)
			}
		}
		for _, key := range plan.Remove {
			switch {
			case strings.HasPrefix(key, v1alpha1.HoldPrefix):
				r.removed("ownership records", 1)
			case strings.HasPrefix(key, v1alpha1.MemoryPrefix):
				r.removed("records of nodes that were not held", 1)
			default:
				r.removed("completion records", 1)
			}
		}
		return !plan.Empty(), err
	}
}

// removeConditions removes the reporters' conditions from all nodes: without a reporter, a condition keeps its last
// status indefinitely.
func (r *run) removeConditions(ctx context.Context) error {
	if len(r.Conditions) == 0 {
		return nil
	}
	return r.untilClean(ctx, allNodes, "Conditions removed from nodes", func(context.Context) (visit, error) { return r.removeConditionsOf, nil })
}

func (r *run) removeConditionsOf(ctx context.Context, obj client.Object) (bool, error) {
	var stale []map[string]string
	for _, condition := range obj.(*corev1.Node).Status.Conditions {
		if slices.Contains(r.Conditions, string(condition.Type)) {
			stale = append(stale, map[string]string{"type": string(condition.Type), "$patch": "delete"})
		}
	}
	if len(stale) == 0 {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": stale}})
	if err != nil {
		return false, err
	}
	target := &corev1.Node{}
	target.Name = obj.GetName()
	if err := r.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("removing conditions: %w", err)
	}
	r.removed("node conditions", len(stale))
	return true, nil
}
