package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

const (
	// standbyCheck is how often a manager checks whether it waits. That costs no request.
	standbyCheck = time.Second

	// standbyInterval is the time between two LISTs of the rules while it waits.
	standbyInterval = time.Minute

	// standbyRewrite is the minimum time between two writes of the condition to one rule, so that the manager does not
	// compete with a controller that removes the condition whenever it writes the status.
	standbyRewrite = 5 * time.Minute

	// StandbyTimeout is the timeout of one request.
	StandbyTimeout = 10 * time.Second
)

// Standby sets the condition SoleController on rules while the manager waits for a lease. It writes nothing
// else, and each write fails if the rule has changed meanwhile: the other controller writes its status. The
// manager that leads next removes the condition.
type Standby struct {
	in     func() string
	client client.Client
	// pods is true if the manager reconciles PodReadinessRules, and so removes the condition from them later.
	pods  bool
	clock clock.PassiveClock

	listed  time.Time
	written map[types.UID]time.Time
}

// NewStandby returns a writer of the condition while the lock waits. If pods is true, it also writes the condition
// to PodReadinessRules.
func NewStandby(lock *Lock, client client.Client, pods bool) *Standby {
	return &Standby{in: lock.WaitingIn, client: client, pods: pods, clock: clock.RealClock{}, written: map[types.UID]time.Time{}}
}

// Run writes the condition until the context ends.
func (s *Standby) Run(ctx context.Context) { wait.UntilWithContext(ctx, s.check, standbyCheck) }

// check writes the condition to the rules if the manager waits, and at most every standbyInterval.
func (s *Standby) check(ctx context.Context) {
	namespace := s.in()
	if namespace == "" || !s.listed.IsZero() && s.clock.Since(s.listed) < standbyInterval {
		return
	}
	s.listed = s.clock.Now()
	rules, err := s.rules(ctx)
	if err != nil {
		log.Error(err, "Listing rules failed; the condition "+v1alpha1.ConditionSoleController+" is not set until it succeeds")
	}
	for _, rule := range rules {
		if s.in() != namespace { // this replica or another one leads now
			return
		}
		err := s.write(ctx, rule, Waiting(namespace))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.Error(err, "Writing the condition "+v1alpha1.ConditionSoleController+" failed", "rule", rule.GetName())
		}
	}
}

func (s *Standby) rules(ctx context.Context) ([]client.Object, error) {
	rules, err := rulecache.ListLiveObjects(ctx, s.client, &v1alpha1.NodeReadinessRuleList{})
	if !s.pods {
		return rules, err
	}
	pods, podsErr := rulecache.ListLiveObjects(ctx, s.client, &podv1alpha1.PodReadinessRuleList{})
	return append(rules, pods...), errors.Join(err, podsErr)
}

func (s *Standby) write(ctx context.Context, rule client.Object, condition metav1.Condition) error {
	last, ok := s.written[rule.GetUID()]
	if ok && s.clock.Since(last) < standbyRewrite {
		return nil
	}
	base := rule.DeepCopyObject().(client.Object)
	condition.ObservedGeneration = rule.GetGeneration()
	if !meta.SetStatusCondition(conditionsOf(rule), condition) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, rule, rulecache.Locked(base)); err != nil {
		return fmt.Errorf("patching status: %w", err)
	}
	s.written[rule.GetUID()] = s.clock.Now()
	return nil
}

func conditionsOf(rule client.Object) *[]metav1.Condition {
	if pods, ok := rule.(*podv1alpha1.PodReadinessRule); ok {
		return &pods.Status.Conditions
	}
	return &rule.(*v1alpha1.NodeReadinessRule).Status.Conditions
}
