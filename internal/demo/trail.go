package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// madeLabel is on everything that a demo has made, so that what a killed one left can be found.
const madeLabel = "readygate.dev/demo"

// trail remembers what the demo made, so that it can be taken back, last things first. What
// was there before is never part of it.
type trail struct {
	client client.Client

	mu   sync.Mutex
	made []client.Object
}

// create makes an object that must not be there.
func (t *trail) create(ctx context.Context, obj client.Object) error {
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[madeLabel] = "true"
	obj.SetLabels(labels)
	if err := t.client.Create(ctx, obj); err != nil {
		return fmt.Errorf("creating %s: %w", t.describe(obj), err)
	}
	t.remember(obj)
	return nil
}

// ensure makes an object unless there is one of its name, which is then left as it is.
func (t *trail) ensure(ctx context.Context, obj client.Object) error {
	err := t.create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (t *trail) remember(obj client.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, obj)
}

// removalPatience is how long the removal of one kind of things may take.
const removalPatience = 90 * time.Second

// remove deletes what was made and fits, and returns when it is gone. What is left is said.
func (t *trail) remove(ctx context.Context, fits func(client.Object) bool) error {
	t.mu.Lock()
	var going []client.Object
	t.made = slices.DeleteFunc(t.made, func(obj client.Object) bool {
		if fits(obj) {
			going = append(going, obj)
			return true
		}
		return false
	})
	t.mu.Unlock()
	slices.Reverse(going)
	ctx, cancel := context.WithTimeout(ctx, removalPatience)
	defer cancel()
	var errs []error
	for _, obj := range going {
		if err := t.client.Delete(ctx, obj, client.GracePeriodSeconds(0)); err != nil && !gone(err) {
			errs = append(errs, fmt.Errorf("deleting %s: %w", t.describe(obj), err))
		}
	}
	for _, obj := range going {
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return gone(t.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)), nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is still there", t.describe(obj)))
		}
	}
	return errors.Join(errs...)
}

// gone says that an object, or its whole kind, is not there.
func gone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// describe reads as in "NodeReadinessRule demo-network-rule".
func (t *trail) describe(obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := t.client.GroupVersionKindFor(obj); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + obj.GetName()
}

func anything(client.Object) bool { return true }
