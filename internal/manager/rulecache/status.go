package rulecache

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/text"
)

// Locked is a patch that fails if anything else changed the object: a merge patch replaces whole
// lists, others' finalizers and conditions among them.
func Locked(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// AddFinalizer adds a finalizer to an object that is not being deleted, and nothing else: the write
// fails if anything else changed.
func AddFinalizer(ctx context.Context, c client.Writer, obj client.Object, finalizer string) error {
	if obj.GetDeletionTimestamp() != nil || controllerutil.ContainsFinalizer(obj, finalizer) {
		return nil
	}
	base := clone(obj)
	controllerutil.AddFinalizer(obj, finalizer)
	if err := c.Patch(ctx, obj, Locked(base)); err != nil {
		obj.SetFinalizers(base.GetFinalizers())
		return fmt.Errorf("adding our finalizer: %w", err)
	}
	return nil
}

// DropFinalizer removes a finalizer, and nothing else.
func DropFinalizer(ctx context.Context, c client.Writer, obj client.Object, finalizer string) error {
	changed := clone(obj)
	controllerutil.RemoveFinalizer(changed, finalizer)
	if err := c.Patch(ctx, changed, Locked(obj)); err != nil {
		return fmt.Errorf("dropping our finalizer: %w", err)
	}
	return nil
}

func clone(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of what it is of
}

// NodeRules lists the rules for nodes past any cache; none if the CRD is gone.
func NodeRules(ctx context.Context, live client.Reader) ([]*v1alpha1.NodeReadinessRule, error) {
	var list v1alpha1.NodeReadinessRuleList
	if err := ListLive(ctx, live, &list); err != nil {
		return nil, err
	}
	return Pointers(list.Items), nil
}

// Pointers returns pointers to the items.
func Pointers[T any](items []T) []*T {
	pointers := make([]*T, len(items))
	for i := range items {
		pointers[i] = &items[i]
	}
	return pointers
}

// Condition returns a condition of a rule, with a message that the API server accepts.
func Condition(conditionType string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: text.Cut(message, text.Condition)}
}

// SetConditions sets the conditions of a status for this generation. Those of the absent types are removed.
func SetConditions(status *[]metav1.Condition, generation int64, now metav1.Time, conditions []metav1.Condition, absent ...string) {
	for _, conditionType := range absent {
		meta.RemoveStatusCondition(status, conditionType)
	}
	for _, condition := range conditions {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, now
		meta.SetStatusCondition(status, condition)
	}
}

// Pace remembers when the status of each rule was written, and since when the next one waits. The
// zero value is one of none.
type Pace struct {
	mu               sync.Mutex
	written, waiting map[string]time.Time
}

// Wrote says that the status of a rule is written, and so waits no more.
func (p *Pace) Wrote(rule string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written == nil {
		p.written = map[string]time.Time{}
	}
	p.written[rule] = at
	delete(p.waiting, rule)
}

// Waits says that the status of a rule waits, and returns since when: now, unless it did before.
func (p *Pace) Waits(rule string, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since, ok := p.waiting[rule]; ok {
		return since
	}
	if p.waiting == nil {
		p.waiting = map[string]time.Time{}
	}
	p.waiting[rule] = now
	return now
}

// Goes says that the status of a rule is as it should be, written or not, and so waits no more. One
// whose write failed still waits, from when it began to.
func (p *Pace) Goes(rule string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, rule)
}

// Last is when the status of a rule was written; false if it was not.
func (p *Pace) Last(rule string) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.written[rule]
	return at, ok
}

// Forget forgets a rule that is gone.
func (p *Pace) Forget(rule string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.written, rule)
	delete(p.waiting, rule)
}

// ListLive lists the rules past any cache. Where the CRD is gone, so are all rules: what they
// left must not stay because nobody can be asked about it.
func ListLive(ctx context.Context, live client.Reader, list client.ObjectList) error {
	err := live.List(ctx, list)
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("listing rules past the cache: %w", err)
}

// ListLiveObjects lists the rules past any cache, as ListLive does, and returns pointers to them.
func ListLiveObjects(ctx context.Context, live client.Reader, list client.ObjectList) ([]client.Object, error) {
	if err := ListLive(ctx, live, list); err != nil {
		return nil, err
	}
	var rules []client.Object
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		rules = append(rules, obj.(client.Object))
		return nil
	})
	return rules, err
}
