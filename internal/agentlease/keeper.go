package agentlease

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/internal/policy"
)

// settles is how long a report rests before it is written: what changes at once is written once.
const settles = 2 * time.Second

// Keeper writes the lease of an agent. All exported fields are required.
type Keeper struct {
	Leases coordinationclient.LeasesGetter
	Node   string
	// Holder is who keeps it, e.g. the name of the agent's pod.
	Holder string
	// Owner is the node: the lease goes with it.
	Owner func() *metav1.OwnerReference
	// Report is what the agent sees now.
	Report func() Report
	Clock  clock.WithTicker
	// Failed is told of writes that failed.
	Failed func(error)

	changed chan struct{}
	written string
}

// NewKeeper makes a keeper of the parts that it needs.
func NewKeeper(k Keeper) *Keeper {
	k.changed = make(chan struct{}, 1)
	return &k
}

// Changed says that the report may be another one.
func (k *Keeper) Changed() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run keeps the lease until the context ends. It does not give it up: pods of an agent that is
// replaced are not orphans.
func (k *Keeper) Run(ctx context.Context) {
	renew := k.Clock.NewTicker(Renews)
	defer renew.Stop()
	for {
		if err := k.write(ctx); err != nil && ctx.Err() == nil {
			k.Failed(err)
		}
		if !k.wait(ctx, renew.C()) {
			return
		}
	}
}

// wait waits until the lease is to be written again.
func (k *Keeper) wait(ctx context.Context, renew <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-renew:
			return true
		case <-k.changed:
			select {
			case <-ctx.Done():
				return false
			case <-k.Clock.After(settles):
			}
			if k.report() != k.written {
				return true
			}
		}
	}
}

func (k *Keeper) report() string {
	data, err := json.Marshal(k.Report())
	if err != nil {
		return "" // it has nothing that cannot be written
	}
	return string(data)
}

// writeTime is how long a write may take: one that hangs is tried again before the agent counts as gone.
const writeTime = 10 * time.Second

// write writes the lease with one request, and creates it if there is none.
func (k *Keeper) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	report, now := k.report(), metav1.NewMicroTime(k.Clock.Now())
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{ReportAnnotation: report}, "labels": Labels()},
		"spec":     coordinationv1.LeaseSpec{HolderIdentity: &k.Holder, LeaseDurationSeconds: ptr.To(int32(Lasts / time.Second)), RenewTime: &now},
	})
	if err != nil {
		return err
	}
	_, err = k.Leases.Leases(Namespace).Patch(ctx, Name(k.Node), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		err = k.create(ctx, report, now)
	}
	if err != nil {
		return fmt.Errorf("writing the lease %s: %w", Name(k.Node), err)
	}
	k.written = report
	return nil
}

func (k *Keeper) create(ctx context.Context, report string, now metav1.MicroTime) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: Name(k.Node), Namespace: Namespace, Labels: Labels(), Annotations: map[string]string{ReportAnnotation: report}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &k.Holder, LeaseDurationSeconds: ptr.To(int32(Lasts / time.Second)), AcquireTime: &now, RenewTime: &now},
	}
	if owner := k.Owner(); owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	_, err := k.Leases.Leases(Namespace).Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// Labels are what every lease of an agent carries.
func Labels() map[string]string {
	return map[string]string{policy.PartOfLabel: policy.PartOf, ComponentLabel: Component}
}
