package podrule

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

const (
	// A sweep waits for at most maxDefer until the admission policy contains no deleted rule, and polls every
	// deferInterval: rules are often deleted together, and one sweep serves them all.
	maxDefer      = 10 * time.Second
	deferInterval = 250 * time.Millisecond

	// A failed sweep is repeated after sweepRetryFirst, then twice as long each time, up to
	// sweepRetryLast: each lists all pods of the cluster.
	sweepRetryFirst = time.Second
	sweepRetryLast  = 5 * time.Minute
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
	// failures is the number of consecutive failed sweeps. The next one is not requested before retry.
	failures int
	retry    time.Time
}

func newSweeps() *sweeps {
	return &sweeps{wake: make(chan struct{}, 1), asked: map[types.UID]bool{}, results: map[types.UID]error{}}
}

// result returns the result of a sweep that began when the admission policy no longer named the rule. Without such a
// sweep it requests one. After a failure it returns the error and the time to the next call, which requests the next
// sweep.
func (s *sweeps) result(rule types.UID, now time.Time) (ended bool, again time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err, ended := s.results[rule]; ended {
		if again = s.retry.Sub(now); err == nil || again > 0 {
			return true, again, err
		}
		delete(s.results, rule)
	}
	if !s.asked[rule] {
		s.asked[rule] = true
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return false, 0, nil
}

// begin returns the rules that wait for a sweep.
func (s *sweeps) begin() map[types.UID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}

// end stores the result for the rules that the sweep served. It removes earlier results of rules that do not exist.
func (s *sweeps) end(served map[types.UID]bool, exists func(types.UID) bool, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.failures = 0
	} else {
		s.retry = now.Add(min(sweepRetryFirst<<min(s.failures, 10), sweepRetryLast))
		s.failures++
	}
	maps.DeleteFunc(s.results, func(rule types.UID, _ error) bool { return !exists(rule) })
	for rule := range served {
		delete(s.asked, rule)
		s.results[rule] = err
	}
}

// sweepWhenAsked runs the requested sweeps, one at a time, until the context ends. The next leader repeats a sweep that
// has not ended then: the finalizers of its rules are still there.
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
			if err != nil {
				log.FromContext(ctx).Error(err, "Opening the gates of deleted rules failed")
			}
			r.sweeps.end(served, func(uid types.UID) bool {
				return err != nil || slices.ContainsFunc(rules, func(rule *podrule.Rule) bool { return rule.UID == uid })
			}, err, r.Clock.Now())
			r.requeueAll()
		}
	}
}

// awaitOtherDeletions waits until the admission policy names no deleted rule, or for maxDefer. It does not
// wait for an administrator.
func (r *Reconciler) awaitOtherDeletions(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, deferInterval, maxDefer, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.PodReadinessRuleList
		err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy)
		return err != nil || !slices.ContainsFunc(list.Items, func(rule v1alpha1.PodReadinessRule) bool {
			if rule.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(&rule, v1alpha1.Finalizer) {
				return false
			}
			gone, wait := r.Coverage.Gone(rule.UID)
			return !gone && (!r.Manual || wait > 0)
		}), nil
	}) // the sweep begins after the timeout, too
}

// sweep opens all gates that no rule requires anymore, on all nodes. Agents do the same; the sweep opens gates of pods
// that they have not seen. It adds to served all deleted rules that the admission policy no longer names, and returns
// the rules that exist.
func (r *Reconciler) sweep(ctx context.Context, served map[types.UID]bool) ([]*podrule.Rule, error) {
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
		d := podrule.Abandoned(rules, &podrule.Subject{Pod: pod, Namespace: namespaces[pod.Namespace]}, r.Clock.Now())
		return r.open(ctx, pod, &d)
	})
}
