package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// removeTimeout is the timeout of removing the lease, also after the context of the work has ended.
const removeTimeout = 5 * time.Second

// OtherLeaderError is the error while a controller of this API leads in a peer namespace and renews its lease.
type OtherLeaderError struct {
	// Leader names it and its lease.
	Leader string
}

// Error names the other controller.
func (e *OtherLeaderError) Error() string {
	return "another controller enforces the rules: " + e.Leader
}

// Exclusively runs the work while no manager leads: it waits for the lease of the managers of this namespace,
// holds it meanwhile, and deletes it at the end. The context of the work ends if the lease is lost.
//
// It runs nothing and returns an OtherLeaderError if a controller in a peer namespace has renewed its lease
// since it was first observed. It waits for the end of a lease that is not renewed. Leases in other namespaces are
// ignored.
func Exclusively(ctx context.Context, config *rest.Config, namespace string, peers []string, work func(context.Context) error) error {
	lock, err := NewLock(config, namespace, peers, DefaultRequestTimeout)
	if err != nil {
		return err
	}
	electing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lock.onPeer = func(peer string) { stop(&OtherLeaderError{Leader: peer}) }

	worked := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: LeaseDuration,
		RenewDeadline: RenewDeadline,
		RetryPeriod:   RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				worked <- work(ctx)
				stop(nil)
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != "" && identity != lock.Identity() {
					log.Info("Waiting until the manager that holds the lease stops, or the lease expires", "leader", identity)
				}
			},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(electing)

	var other *OtherLeaderError
	switch {
	case lock.held:
		return errors.Join(<-worked, lock.remove(context.WithoutCancel(ctx), namespace))
	case errors.As(context.Cause(electing), &other):
		// Our lease was free or had expired: otherwise the peers would not have been checked.
		return errors.Join(other, lock.remove(context.WithoutCancel(ctx), namespace))
	case elector.GetLeader() != "":
		return fmt.Errorf("waiting for the lease %s/%s: %s holds it and renews it: stop that manager first, e.g. kubectl -n %s scale deployment readygate-manager --replicas=0: %w",
			namespace, v1alpha1.LeaseName, elector.GetLeader(), namespace, ctx.Err())
	default:
		return fmt.Errorf("acquiring the lease %s/%s: %w", namespace, v1alpha1.LeaseName, ctx.Err())
	}
}

// remove deletes the lease, unless another manager has acquired it meanwhile. A renewal that was in flight when
// the election ended may still change it.
func (l *Lock) remove(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	leases := l.peers.client.Leases(namespace)
	for {
		lease, err := leases.Get(ctx, v1alpha1.LeaseName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the lease to delete it: %w", err)
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); l.held && holder != l.Identity() {
			return fmt.Errorf("the lease %s/%s was acquired by %s: stop that manager and run the cleanup again", namespace, v1alpha1.LeaseName, holder)
		}
		err = leases.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion}})
		if !apierrors.IsConflict(err) {
			return ignoreNotFound(err)
		}
	}
}

func ignoreNotFound(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("deleting the lease: %w", err)
}
