package podrule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/gating"
	"github.com/readygate/readygate/internal/note"
)

const (
	// roundInterval is the time between two rounds over nodes without a live agent. Of many such nodes
	// a round visits a quarter, in turn, and at least roundNodes.
	roundInterval = 15 * time.Second
	roundNodes    = 20
	// pageSize is how many pods are read at a time.
	pageSize = 500
)

// orphans is what rounds have found, by node and rule. It is safe for concurrent use.
type orphans struct {
	mu    sync.Mutex
	found map[string]map[types.UID]*gating.Tally
	told  map[types.UID]bool // pods whose lateness was told of
	next  string             // the node at which the next round begins
	ended bool               // there was a round
}

// of is what was found of a rule on nodes that have no live agent: the sum, the nodes that have pods with
// its gate, and where pods are.
func (o *orphans) of(rule types.UID, alive agents) (total gating.Tally, nodes []string, places map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	places = map[string]string{}
	for node, tallies := range o.found {
		tally := tallies[rule]
		if _, ok := alive[node]; ok || tally == nil {
			continue
		}
		locate(places, node, tally)
		total.Add(tally)
		if tally.Gated > 0 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return total, nodes, places
}

// known says whether there was a round.
func (o *orphans) known() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

// turn is which of the nodes are visited in this round. What is known of others that are gone is
// forgotten.
func (o *orphans) turn(nodes []string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for node := range o.found {
		if _, ok := slices.BinarySearch(nodes, node); !ok {
			delete(o.found, node)
		}
	}
	if len(nodes) == 0 {
		o.told, o.next = nil, ""
		return nil
	}
	begin, _ := slices.BinarySearch(nodes, o.next)
	ordered := slices.Concat(nodes[begin:], nodes[:begin])
	count := min(len(nodes), max(roundNodes, len(nodes)/4))
	o.next = ordered[count%len(ordered)]
	return ordered[:count]
}

func (o *orphans) keep(node string, tallies map[types.UID]*gating.Tally) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found == nil {
		o.found = map[string]map[types.UID]*gating.Tally{}
	}
	o.found[node] = tallies
}

func (o *orphans) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
}

// Round looks at pods on nodes without a live agent, and opens what is to be opened. Rules, namespaces
// and the lease of a node are read past the cache: one that is behind must open nothing.
func (r *Reconciler) Round(ctx context.Context) error {
	var known v1alpha1.PodReadinessRuleList
	if err := r.Client.List(ctx, &known, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading the rules for pods: %w", err)
	}
	if len(known.Items) == 0 { // the last one opened all gates before it went
		r.orphans.end()
		return nil
	}
	alive, err := r.agents(ctx)
	if err != nil {
		return err
	}
	nodes := r.orphans.turn(r.orphaned(alive))
	if len(nodes) > 0 {
		rules, err := Rules(ctx, r.Live)
		if err != nil {
			return err
		}
		namespaces, err := r.namespaces(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if err := r.visitNode(ctx, node, rules, namespaces); err != nil {
				return err
			}
		}
	}
	r.orphans.end()
	return nil
}

// visitNode looks at all pods of a node. One that cannot be written does not keep others waiting.
func (r *Reconciler) visitNode(ctx context.Context, node string, rules []*gating.Rule, namespaces map[string]map[string]string) error {
	gone, err := r.gone(ctx, node)
	if err != nil || !gone {
		return err
	}
	tallies := map[types.UID]*gating.Tally{}
	for _, rule := range rules {
		tallies[rule.UID] = &gating.Tally{}
	}
	failed := r.eachPod(ctx, func(pod *corev1.Pod) error {
		subject := &gating.Subject{Pod: pod, Namespace: namespaces[pod.Namespace]}
		d := gating.Orphan(rules, subject, r.Clock.Now())
		for _, rule := range rules {
			tallies[rule.UID].Count(rule, subject, &d)
		}
		r.tellLate(pod, &d)
		return r.open(ctx, pod, &d)
	}, client.MatchingFields{"spec.nodeName": node})
	for _, tally := range tallies {
		tally.Cut(v1alpha1.MaxListedPods)
	}
	r.orphans.keep(node, tallies)
	return failed
}

// eachPod reads pods past the cache, in pages, and visits all of them. What fails is told at the end.
func (r *Reconciler) eachPod(ctx context.Context, visit func(*corev1.Pod) error, options ...client.ListOption) error {
	var failed []error
	for next := ""; ; {
		var page corev1.PodList
		if err := r.Live.List(ctx, &page, append(slices.Clone(options), client.Limit(pageSize), client.Continue(next))...); err != nil {
			return errors.Join(append(failed, fmt.Errorf("reading pods: %w", err))...)
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil && len(failed) < 10 {
				failed = append(failed, err)
			}
		}
		if next = page.Continue; next == "" {
			return errors.Join(failed...)
		}
	}
}

// namespaces are the labels of all namespaces, past the cache.
func (r *Reconciler) namespaces(ctx context.Context) (map[string]map[string]string, error) {
	var list corev1.NamespaceList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	all := map[string]map[string]string{}
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].Labels
	}
	return all, nil
}

// open opens the gates of a pod that a decision opens.
func (r *Reconciler) open(ctx context.Context, pod *corev1.Pod, d *gating.Decision) error {
	if d.Patch == nil {
		return nil
	}
	patch, err := d.Patch.Strategic(pod.UID)
	if err != nil {
		return err
	}
	err = r.Client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch), client.DisableReadYourWritesConsistency)
	switch {
	case gating.Missed(err):
		return nil
	case err != nil:
		return fmt.Errorf("opening the gates of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for _, condition := range d.Patch.Conditions {
		log.FromContext(ctx).Info("Gate opened", "pod", client.ObjectKeyFromObject(pod), "gate", condition.Type, "reason", condition.Reason)
		if condition.Reason == v1alpha1.ReasonAgentGone {
			r.Events.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.EventOpened, v1alpha1.ActionOpen, "%s", note.Cut(condition.Message, note.Event))
		}
	}
	return nil
}

// tellLate tells of a pod that waits for too long, once.
func (r *Reconciler) tellLate(pod *corev1.Pod, d *gating.Decision) {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if len(v.Late) == 0 || v.Open || !r.orphans.first(pod.UID) {
			continue
		}
		r.Events.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.EventLate, v1alpha1.ActionAwait, "%s", note.Cut(fmt.Sprintf(
			"longer than the %s of rule %s: the pod's node, %s, has no live podgate agent that could open gate %s", v.Late[0].Deadline, v.Late[0].Name, pod.Spec.NodeName, v.Gate), note.Event))
	}
}

func (o *orphans) first(pod types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[pod] {
		return false
	}
	if o.told == nil {
		o.told = map[types.UID]bool{}
	}
	o.told[pod] = true
	return true
}
