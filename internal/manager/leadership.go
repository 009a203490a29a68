package manager

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/program"
)

// namespaceFlag is the flag that names the manager's namespace.
const namespaceFlag = "--leader-election-namespace"

// lock returns the lease of the leader. Without leader election it is a lock in memory, which still waits for
// other controllers of this API.
func (o *Options) lock(config *rest.Config) (*leadership.Lock, error) {
	if !o.LeaderElect {
		return leadership.NewLock(config, "", append(slices.Clone(o.Peers), o.listNamespace()), o.RequestTimeout)
	}
	namespace := o.LeaseSpace
	if namespace == "" {
		var err error
		if namespace, err = program.InClusterNamespace(namespaceFlag); err != nil {
			return nil, err
		}
	}
	return leadership.NewLock(config, namespace, o.Peers, o.RequestTimeout)
}

// namespace returns the manager's namespace; empty if it is not known.
func (o *Options) namespace() string {
	if o.LeaseSpace != "" {
		return o.LeaseSpace
	}
	namespace, err := program.InClusterNamespace(namespaceFlag)
	if err != nil {
		return ""
	}
	return namespace
}

// listNamespace returns the namespace of the list of rule taints, in which other managers hold the lease.
func (o *Options) listNamespace() string {
	if namespace := o.namespace(); namespace != "" {
		return namespace
	}
	return admission.ManagerNamespace
}

// others returns the observer of leases in all namespaces except that of the manager's own lease.
func (o *Options) others() *leadership.Others {
	own := ""
	if o.LeaderElect {
		own = o.namespace()
	}
	return leadership.NewOthers(clock.RealClock{}, own)
}

// addLeadership adds the reports about other controllers of this API: while the manager leads, of controllers outside
// of the peer namespaces; while it waits, of the controller that it waits for.
func (o *Options) addLeadership(mgr manager.Manager, lock *leadership.Lock, config *rest.Config, others *leadership.Others) error {
	config.Timeout = leadership.StandbyTimeout
	writer, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	leadership.RegisterMetrics(o.Registerer, others, func() bool { return lock.WaitingIn() != "" })
	waiting := leadership.NewStandby(lock, writer, o.servesPods())
	return errors.Join(
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			others.Run(ctx, mgr.GetAPIReader())
			return nil
		})),
		mgr.Add(standby(func(ctx context.Context) error {
			waiting.Run(ctx)
			return nil
		})))
}
