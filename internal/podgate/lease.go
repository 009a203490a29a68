package podgate

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

	"github.com/readygate/readygate/internal/core/agents"
)

// reportDelay is the time between a change and its write, so that changes at the same time cost one write.
const reportDelay = 2 * time.Second

// leaseWriter writes the lease of an agent. All exported fields are required.
type leaseWriter struct {
	Leases coordinationclient.LeasesGetter
	Node   string
	// Holder is the holder of the lease, e.g. the name of the agent's pod.
	Holder string
	// Owner is the node, so that the lease is deleted with it.
	Owner func() *metav1.OwnerReference
	// Report returns what the agent observes now.
	Report func() agents.Report
	Clock  clock.WithTicker
	// Failed is called with the error of a failed write.
	Failed func(error)

	changed chan struct{}
	written string
}

// newLeaseWriter returns a writer with the given fields.
func newLeaseWriter(w leaseWriter) *leaseWriter {
	w.changed = make(chan struct{}, 1)
	return &w
}

// Changed requests a write if the report has changed.
func (w *leaseWriter) Changed() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run renews the lease until the context ends. It does not release the lease: pods of an agent that is
// replaced are not orphans.
func (w *leaseWriter) Run(ctx context.Context) {
	renew := w.Clock.NewTicker(agents.Renews)
	defer renew.Stop()
	for {
		if err := w.write(ctx); err != nil && ctx.Err() == nil {
			w.Failed(err)
		}
		if !w.wait(ctx, renew.C()) {
			return
		}
	}
}

// wait returns true when the lease must be written again, and false when the context ends.
func (w *leaseWriter) wait(ctx context.Context, renew <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-renew:
			return true
		case <-w.changed:
			select {
			case <-ctx.Done():
				return false
			case <-w.Clock.After(reportDelay):
			}
			if w.report() != w.written {
				return true
			}
		}
	}
}

func (w *leaseWriter) report() string {
	data, err := json.Marshal(w.Report())
	if err != nil {
		return "" // a Report has no field that cannot be encoded
	}
	return string(data)
}

// writeTimeout is the timeout of one write: it is retried before the agent counts as gone.
const writeTimeout = 10 * time.Second

// write writes the lease with one request, and creates it if there is none.
func (w *leaseWriter) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	report, now := w.report(), metav1.NewMicroTime(w.Clock.Now())
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{agents.ReportAnnotation: report}, "labels": agents.Labels()},
		"spec":     coordinationv1.LeaseSpec{HolderIdentity: &w.Holder, LeaseDurationSeconds: ptr.To(int32(agents.Lasts / time.Second)), RenewTime: &now},
	})
	if err != nil {
		return err
	}
	_, err = w.Leases.Leases(agents.Namespace).Patch(ctx, agents.Name(w.Node), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		err = w.create(ctx, report, now)
	}
	if err != nil {
		return fmt.Errorf("writing the lease %s: %w", agents.Name(w.Node), err)
	}
	w.written = report
	return nil
}

func (w *leaseWriter) create(ctx context.Context, report string, now metav1.MicroTime) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: agents.Name(w.Node), Namespace: agents.Namespace, Labels: agents.Labels(), Annotations: map[string]string{agents.ReportAnnotation: report}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &w.Holder, LeaseDurationSeconds: ptr.To(int32(agents.Lasts / time.Second)), AcquireTime: &now, RenewTime: &now},
	}
	if owner := w.Owner(); owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	_, err := w.Leases.Leases(agents.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	return err
}
