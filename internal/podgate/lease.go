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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/internal/core/agents"
)

// reportDelay is the time between a change and its write, so that simultaneous changes cost one write.
const reportDelay = 2 * time.Second

// leaseWriter writes the lease of an agent. All exported fields are required.
type leaseWriter struct {
	Leases coordinationclient.LeaseInterface
	Node   string
	// Holder is the holder of the lease, e.g. the name of the agent's pod.
	Holder string
	// Owner is the node, so that the lease is deleted with it.
	Owner func() *metav1.OwnerReference
	// Report returns what the agent observes now.
	Report func() agents.Report
	// Changed requests a write if the report has changed. It has a buffer for one request.
	Changed chan struct{}

	written string
}

// Run renews the lease until the context ends. It does not release the lease: the pods of an agent that is
// replaced must not count as orphans.
func (w *leaseWriter) Run(ctx context.Context) {
	renew := time.NewTicker(agents.Renews)
	defer renew.Stop()
	for ctx.Err() == nil {
		if err := w.write(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Writing the lease failed; if the failures continue, the node counts as a node without an agent")
		}
		w.wait(ctx, renew.C)
	}
}

// wait returns when the lease must be written again, or the context has ended.
func (w *leaseWriter) wait(ctx context.Context, renew <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew:
			return
		case <-w.Changed:
			select {
			case <-ctx.Done():
				return
			case <-time.After(reportDelay):
			}
			if w.report() != w.written {
				return
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

// writeTimeout is the timeout of one write. It leaves time for a retry before the lease expires.
const writeTimeout = 10 * time.Second

// write writes the lease with one request, and creates it if there is none.
func (w *leaseWriter) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	name, report, now := agents.Name(w.Node), w.report(), metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Labels: agents.Labels(), Annotations: map[string]string{agents.ReportAnnotation: report}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &w.Holder, LeaseDurationSeconds: ptr.To(int32(agents.Lasts / time.Second)), RenewTime: &now},
	}
	patch, err := json.Marshal(lease) // omits empty fields
	if err != nil {
		return err
	}
	_, err = w.Leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		lease.Name, lease.Spec.AcquireTime = name, &now
		if owner := w.Owner(); owner != nil {
			lease.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		_, err = w.Leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the lease %s: %w", name, err)
	}
	w.written = report
	return nil
}
