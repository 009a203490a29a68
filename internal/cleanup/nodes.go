package cleanup

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/controller/node"
	"github.com/readygate/readygate/internal/readiness"
)

const (
	// page is how many nodes are in memory at the same time.
	page = 500
	// workers is how many of them are written at the same time.
	workers = 16

	// quiet is how long nodes must stay clean: who puts things back does so at once.
	quiet = time.Second
	// patience is how often a node may be cleaned before somebody must be at work against us.
	patience = 4
)

// putBackError says that what is taken off a node comes back.
type putBackError struct{ node string }

func (e *putBackError) Error() string {
	return fmt.Sprintf("node %s was cleaned %d times, and somebody puts it back: stop the manager that enforces the rules without the lease, "+
		"such as one outside of the cluster that was started without --leader-elect", e.node, patience)
}

// sweepNodes takes everything of rules off all nodes, but for completion records of rules that
// stay.
func (r *run) sweepNodes(ctx context.Context) error {
	return r.untilClean(ctx, "Nodes swept", func(ctx context.Context) (visit, error) {
		rules, err := r.listRules(ctx)
		if err != nil {
			return nil, err
		}
		// Past the cache, and nobody makes records: a rule that is not there does not exist.
		book, now := readiness.NewRulebook(rules).Withdrawn(), time.Now()
		return r.settle(func(n *readiness.Node) *readiness.Plan { return book.Plan(n, now) }), nil
	})
}

// disownNodes removes our records from all nodes, and nothing else.
func (r *run) disownNodes(ctx context.Context) error {
	return r.untilClean(ctx, "Records removed from nodes", func(context.Context) (visit, error) { return r.settle(readiness.Disown), nil })
}

// visit looks at one node, and says whether it changed it.
type visit func(context.Context, *corev1.Node) (bool, error)

func (r *run) settle(decide func(*readiness.Node) *readiness.Plan) visit {
	return func(ctx context.Context, obj *corev1.Node) (bool, error) {
		plan, err := node.Settle(ctx, r.client, obj, decide)
		for _, change := range plan.Changes {
			if change.Kind == readiness.Removed {
				r.removed("taints", 1)
			}
		}
		for _, key := range plan.Remove {
			switch {
			case strings.HasPrefix(key, v1alpha1.HoldPrefix):
				r.removed("records of holds", 1)
			case strings.HasPrefix(key, v1alpha1.MemoryPrefix):
				r.removed("notes about nodes that were not held", 1)
			default:
				r.removed("completion records", 1)
			}
		}
		return !plan.Empty(), err
	}
}

// untilClean visits all nodes until a round finds nothing to do, some time after the last change:
// that nothing is left, and nothing comes back, is seen and not assumed.
func (r *run) untilClean(ctx context.Context, done string, prepare func(context.Context) (visit, error)) error {
	nodes, total, cleaned := 0, 0, map[string]int{}
	err := insist(ctx, func(ctx context.Context) error {
		for {
			look, err := prepare(ctx)
			if err != nil {
				return err
			}
			seen, changed, err := r.eachNode(ctx, look)
			nodes, total = max(nodes, seen), total+len(changed)
			if err != nil || len(changed) == 0 {
				return err
			}
			for _, name := range changed {
				if cleaned[name]++; cleaned[name] == patience {
					return &putBackError{node: name}
				}
			}
			if !sleep(ctx, quiet) {
				return ctx.Err()
			}
		}
	})
	log.Info(done, "nodes", nodes, "changed", total, "complete", err == nil)
	return err
}

// eachNode visits all nodes, some at the same time, page by page, and names those that it
// changed. Nodes that fail do not keep back others.
func (r *run) eachNode(ctx context.Context, look visit) (seen int, changed []string, err error) {
	var (
		mu     sync.Mutex
		failed failures
		list   corev1.NodeList
	)
	for more := true; more; more = list.Continue != "" {
		token := list.Continue
		list = corev1.NodeList{}
		if err := r.client.List(ctx, &list, client.Limit(page), client.Continue(token)); err != nil {
			return seen, changed, fmt.Errorf("listing nodes: %w", err)
		}
		seen += len(list.Items)
		var busy sync.WaitGroup
		places := make(chan struct{}, workers)
		for i := range list.Items {
			places <- struct{}{}
			busy.Go(func() {
				defer func() { <-places }()
				did, err := look(ctx, &list.Items[i])
				mu.Lock()
				defer mu.Unlock()
				if did {
					changed = append(changed, list.Items[i].Name)
				}
				failed.add(list.Items[i].Name, err)
			})
		}
		busy.Wait()
	}
	return seen, changed, failed.err("nodes")
}
