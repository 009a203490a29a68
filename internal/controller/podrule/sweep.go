package podrule

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/gating"
)

const (
	// A sweep waits for at most maxDefer until no deleted rule is left in the admission policy, and
	// looks every deferInterval: rules are often deleted together, and one sweep serves them all.
	maxDefer      = 10 * time.Second
	deferInterval = 250 * time.Millisecond
)

// sweeps shares sweeps over all pods of the cluster among the deleted rules that need one. It is safe for
// concurrent use.
type sweeps struct {
	// wake has an entry when a rule waits for a sweep that has not begun.
	wake chan struct{}

	mu    sync.Mutex
	asked map[types.UID]bool
	// results are those of the rules that a sweep served.
	results map[types.UID]error
}

func newSweeps() *sweeps {
	return &sweeps{wake: make(chan struct{}, 1), asked: map[types.UID]bool{}, results: map[types.UID]error{}}
}

// result is that of a sweep that began when the admission policy no longer named the rule. Without one it
// asks for a sweep. After a failure the next call asks again.
func (s *sweeps) result(rule types.UID) (ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err, ended := s.results[rule]; ended {
		if err != nil {
			delete(s.results, rule)
		}
		return true, err
	}
	if !s.asked[rule] {
		s.asked[rule] = true
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return false, nil
}

// begin returns the rules that wait for a sweep.
func (s *sweeps) begin() map[types.UID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := map[types.UID]bool{}
	for rule := range s.asked {
		waiting[rule] = true
	}
	return waiting
}

// end notes the result for the rules that the sweep served. Earlier results are dropped, except for rules
// that still exist.
func (s *sweeps) end(served map[types.UID]bool, exists func(types.UID) bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rule := range s.results {
		if !exists(rule) {
			delete(s.results, rule)
		}
	}
	for rule := range served {
		delete(s.asked, rule)
		s.results[rule] = err
	}
}

// sweepWhenAsked runs the sweeps that deleted rules ask for, one at a time, until the context ends. A
// sweep that has not ended then is repeated by the next leader: the finalizers of its rules are still
// there.
func (r *Reconciler) sweepWhenAsked(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.sweeps.wake:
		}
		r.awaitOtherDeletions(ctx)
		if served := r.sweeps.begin(); len(served) > 0 {
			rules, err := r.sweep(ctx, served)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the manager stops
			}
			r.sweeps.end(served, func(uid types.UID) bool {
				return err != nil || slices.ContainsFunc(rules, func(rule *gating.Rule) bool { return rule.UID == uid })
			}, err)
			r.lookAgain()
		}
	}
}

// awaitOtherDeletions waits until the admission policy names no deleted rule, or for maxDefer.
func (r *Reconciler) awaitOtherDeletions(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, deferInterval, maxDefer, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.PodReadinessRuleList
		err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy)
		return err != nil || !slices.ContainsFunc(list.Items, func(rule v1alpha1.PodReadinessRule) bool {
			if rule.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(&rule, v1alpha1.Finalizer) {
				return false
			}
			gone, _ := r.Coverage.Gone(rule.UID)
			return !gone
		}), nil
	}) // the sweep begins after the timeout, too
}

// sweep opens every gate that no rule asks for any more, on all nodes. Agents do the same; the sweep opens
// what they have not seen. It adds all deleted rules to served that the admission policy no longer names,
// and returns the rules that exist.
func (r *Reconciler) sweep(ctx context.Context, served map[types.UID]bool) ([]*gating.Rule, error) {
	rules, namespaces, err := r.live(ctx)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		if gone, _ := r.Coverage.Gone(rule.UID); gone && rule.Deleting {
			served[rule.UID] = true
		}
	}
	return rules, r.eachPod(ctx, func(pod *corev1.Pod) error {
		d := gating.Abandoned(rules, &gating.Subject{Pod: pod, Namespace: namespaces[pod.Namespace]}, r.Clock.Now())
		return r.open(ctx, pod, &d)
	})
}
