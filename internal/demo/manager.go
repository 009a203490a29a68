package demo

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager"
)

// localManager is a manager in this process.
type localManager struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // when it is done
}

// runManager runs a manager as this user.
func runManager(config *rest.Config) *localManager {
	options := manager.NewOptions()
	options.RestConfig, options.Registerer, options.HealthAddr = config, prometheus.NewRegistry(), "0"
	options.LeaderElect, options.LeaseSpace = false, admission.ManagerNamespace
	ctx, cancel := context.WithCancel(context.Background())
	e := &localManager{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		e.err = options.Run(ctx)
	}()
	return e
}

// stop ends it and returns when it has ended. A manager that was never started has.
func (e *localManager) stop() error {
	if e == nil {
		return nil
	}
	e.cancel()
	<-e.done
	if e.err != nil {
		return fmt.Errorf("the manager: %w", e.err)
	}
	return nil
}

// exited returns an error if the manager has ended by itself.
func (e *localManager) exited() error {
	if e == nil {
		return nil
	}
	select {
	case <-e.done:
		return fmt.Errorf("the manager has ended: %v", e.err)
	default:
		return nil
	}
}
