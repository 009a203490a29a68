package podrule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/liveread"
	"github.com/readygate/readygate/internal/text"
)

const (
	// roundInterval is the time between two rounds over nodes without a live agent. A round visits a quarter of these
	// nodes, in turn, and at least roundNodes. It also visits roundNodes of the nodes where no pod had a gate last time.
	roundInterval = 15 * time.Second
	roundNodes    = 20
	// pageSize is the number of pods per LIST request.
	pageSize = 500
)

// orphans has the results of rounds, by node. It is safe for concurrent use.
type orphans struct {
	mu          sync.Mutex
	found       map[string]*visited
	busy, quiet turn
	ended       atomic.Bool // a round has ended
}

// visited is the result of a visit of one node: counts by rule, and the pods with an event for their deadline.
type visited struct {
	tallies      map[types.UID]*podrule.Tally
	lateReported map[types.UID]bool
}

func (v *visited) isQuiet() bool {
	for _, tally := range v.tallies {
		if tally.Gated > 0 {
			return false
		}
	}
	return true
}

// turn is the name of the node at which the next round begins.
type turn string

// take returns the next count nodes of a sorted list, in turn.
func (t *turn) take(nodes []string, count int) []string {
	if len(nodes) == 0 {
		return nil
	}
	begin, _ := slices.BinarySearch(nodes, string(*t))
	ordered := slices.Concat(nodes[begin:], nodes[:begin])
	count = min(count, len(ordered))
	*t = turn(ordered[count%len(ordered)])
	return ordered[:count]
}

// addTo adds the counts of a rule on nodes without a live agent. It returns the number of pods with the gate of the rule
// there, and the nodes of these pods.
func (o *orphans) addTo(total *podrule.Tally, rule types.UID, alive liveAgents) (gated int, nodes []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for node, found := range o.found {
		tally := found.tallies[rule]
		if _, ok := alive[node]; ok || tally == nil {
			continue
		}
		total.AddFrom(node, tally)
		gated += tally.Gated
		if tally.Gated > 0 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return gated, nodes
}

// next returns the nodes to visit in this round, and removes the results of nodes that are not in the list.
func (o *orphans) next(nodes []string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.found, func(node string, _ *visited) bool {
		_, ok := slices.BinarySearch(nodes, node)
		return !ok
	})
	var busy, quiet []string
	for _, node := range nodes {
		if found := o.found[node]; found != nil && found.isQuiet() {
			quiet = append(quiet, node)
		} else {
			busy = append(busy, node)
		}
	}
	return slices.Concat(o.busy.take(busy, max(roundNodes, len(busy)/4)), o.quiet.take(quiet, roundNodes))
}

// last returns the result of the last visit of a node.
func (o *orphans) last(node string) *visited {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.found[node]; found != nil {
		return found
	}
	return &visited{}
}

func (o *orphans) keep(node string, found *visited) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found == nil {
		o.found = map[string]*visited{}
	}
	o.found[node] = found
}

// Round evaluates the pods on nodes without a live agent, and opens the gates that it decides to open. It reads rules,
// namespaces and the lease of a node from the API server: a stale cache must not open a gate.
func (r *Reconciler) Round(ctx context.Context) error {
	var known v1alpha1.PodReadinessRuleList
	if err := r.Client.List(ctx, &known, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing PodReadinessRules: %w", err)
	}
	if len(known.Items) == 0 { // the deletion of the last rule has opened all gates
		r.orphans.ended.Store(true)
		return nil
	}
	alive, err := r.agents(ctx)
	if err != nil {
		return err
	}
	var failed []error
	if nodes := r.orphans.next(r.orphaned(alive)); len(nodes) > 0 {
		rules, namespaces, err := r.live(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes { // a failure on one node does not delay the others
			failed = append(failed, r.visitNode(ctx, node, rules, namespaces))
		}
	}
	if ctx.Err() == nil {
		r.orphans.ended.Store(true)
	}
	return errors.Join(failed...)
}

// live returns the rules and the labels of all namespaces, from the API server.
func (r *Reconciler) live(ctx context.Context) ([]*podrule.Rule, map[string]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	rules, err := Rules(ctx, r.Live)
	if err != nil {
		return nil, nil, err
	}
	namespaces, err := r.namespaces(ctx)
	return rules, namespaces, err
}

// visitNode evaluates all pods of a node.
func (r *Reconciler) visitNode(ctx context.Context, node string, rules []*podrule.Rule, namespaces map[string]map[string]string) error {
	gone, err := r.gone(ctx, node)
	if err != nil || !gone {
		return err
	}
	last, found := r.orphans.last(node), &visited{tallies: map[types.UID]*podrule.Tally{}, lateReported: map[types.UID]bool{}}
	for _, rule := range rules {
		found.tallies[rule.UID] = &podrule.Tally{}
	}
	failed := r.eachPod(ctx, func(pod *corev1.Pod) error {
		subject := &podrule.Subject{Pod: pod, Namespace: namespaces[pod.Namespace]}
		d := podrule.Orphan(rules, subject, r.Clock.Now())
		for _, rule := range rules {
			found.tallies[rule.UID].Count(rule, subject, &d)
		}
		if late(&d) {
			found.lateReported[pod.UID] = true
			if !last.lateReported[pod.UID] {
				r.reportLate(pod, &d)
			}
		}
		return r.open(ctx, pod, &d)
	}, client.MatchingFields{"spec.nodeName": node})
	for _, tally := range found.tallies {
		tally.Cut(v1alpha1.MaxListedPods)
	}
	r.orphans.keep(node, found)
	return failed
}

// eachPod lists pods from the API server in pages, and visits all of them until the context ends. It returns the joined
// errors.
func (r *Reconciler) eachPod(ctx context.Context, visit func(*corev1.Pod) error, options ...client.ListOption) error {
	var failed []error
	for page, err := range liveread.Pages(func(token string) (*corev1.PodList, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		page := &corev1.PodList{}
		return page, r.Live.List(ctx, page, append(slices.Clone(options), client.Limit(pageSize), client.Continue(token))...)
	}) {
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("listing pods: %w", err))...)
		}
		for i := range page.Items {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := visit(&page.Items[i]); err != nil && len(failed) < 10 {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// namespaces returns the labels of all namespaces, from the API server.
func (r *Reconciler) namespaces(ctx context.Context) (map[string]map[string]string, error) {
	var list corev1.NamespaceList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	all := map[string]map[string]string{}
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].Labels
	}
	return all, nil
}

// open sends the patch of a decision.
func (r *Reconciler) open(ctx context.Context, pod *corev1.Pod, d *podrule.Decision) error {
	if d.Patch == nil {
		return nil
	}
	err := d.Patch.Send(pod.UID, func(patch []byte) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return r.Client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch), client.DisableReadYourWritesConsistency)
	})
	switch {
	case podrule.Missed(err):
		return nil
	case podrule.Full(err): // its gates are open; a full annotation must not block the deletion of a rule
		log.FromContext(ctx).Info("Latch not opened: the annotations of the pod have no room for its key", "pod", client.ObjectKeyFromObject(pod))
		return nil
	case err != nil:
		return fmt.Errorf("opening the gates of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for _, condition := range d.Patch.Conditions {
		log.FromContext(ctx).Info("Gate opened", "pod", client.ObjectKeyFromObject(pod), "gate", condition.Type, "reason", condition.Reason)
		if condition.Reason == v1alpha1.ReasonAgentGone {
			r.Events.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.EventOpened, v1alpha1.ActionOpen, "%s", text.Cut(condition.Message, text.Event))
		}
	}
	return nil
}

// late reports whether a closed gate of the pod is past a deadline.
func late(d *podrule.Decision) bool {
	return slices.ContainsFunc(d.Verdicts, func(v podrule.Verdict) bool { return len(v.Late) > 0 && !v.Open })
}

// reportLate emits an event about a pod with a closed gate that is past a deadline.
func (r *Reconciler) reportLate(pod *corev1.Pod, d *podrule.Decision) {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if len(v.Late) == 0 || v.Open {
			continue
		}
		r.Events.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.EventLate, v1alpha1.ActionAwait, "%s", text.Cut(fmt.Sprintf(
			"Waiting for longer than deadlineSeconds (%s) of rule %s: node %s has no live podgate agent to open gate %s", v.Late[0].Deadline, v.Late[0].Name, pod.Spec.NodeName, v.Gate), text.Event))
	}
}
