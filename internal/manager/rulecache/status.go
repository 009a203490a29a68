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

// Locked returns a patch that fails if another client changed the object: a merge patch replaces whole lists, including
// the finalizers and conditions of other clients.
func Locked(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// AddFinalizer adds a finalizer to an object that is not being deleted, and changes nothing else. The write fails if
// another client changed the object.
func AddFinalizer(ctx context.Context, c client.Writer, obj client.Object, finalizer string) error {
	if obj.GetDeletionTimestamp() != nil || controllerutil.ContainsFinalizer(obj, finalizer) {
		return nil
	}
	base := clone(obj)
	controllerutil.AddFinalizer(obj, finalizer)
	if err := c.Patch(ctx, obj, Locked(base)); err != nil {
		obj.SetFinalizers(base.GetFinalizers())
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	return nil
}

// DropFinalizer removes a finalizer, and changes nothing else.
func DropFinalizer(ctx context.Context, c client.Writer, obj client.Object, finalizer string) error {
	changed := clone(obj)
	controllerutil.RemoveFinalizer(changed, finalizer)
	if err := c.Patch(ctx, changed, Locked(obj)); err != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	return nil
}

func clone(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
}

// NodeRules lists NodeReadinessRules from the API server; none if the CRD does not exist.
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

// StatusWrites has the time of the last status write of each rule, and since when the next one is deferred. The zero
// value is ready for use. It is safe for concurrent use.
type StatusWrites struct {
	mu               sync.Mutex
	written, waiting map[string]time.Time
}

// Wrote records a status write of a rule, which ends its deferral.
func (w *StatusWrites) Wrote(rule string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == nil {
		w.written = map[string]time.Time{}
	}
	w.written[rule] = at
	delete(w.waiting, rule)
}

// Defer records that the status write of a rule is deferred, and returns since when.
func (w *StatusWrites) Defer(rule string, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if since, ok := w.waiting[rule]; ok {
		return since
	}
	if w.waiting == nil {
		w.waiting = map[string]time.Time{}
	}
	w.waiting[rule] = now
	return now
}

// UpToDate ends the deferral of a rule whose status is up to date, written or not. After a failed write the deferral
// continues.
func (w *StatusWrites) UpToDate(rule string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, rule)
}

// Last returns the time of the last status write of a rule; false if there was none.
func (w *StatusWrites) Last(rule string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.written[rule]
	return at, ok
}

// Forget removes a deleted rule.
func (w *StatusWrites) Forget(rule string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, rule)
	delete(w.waiting, rule)
}

// ListLive lists the rules from the API server. Without the CRD no rules exist, so it returns none: their leftovers
// must be removed, too.
func ListLive(ctx context.Context, live client.Reader, list client.ObjectList) error {
	err := live.List(ctx, list)
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("listing rules from the API server: %w", err)
}

// ListLiveObjects lists the rules from the API server, as ListLive does, and returns pointers to them.
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
