package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/check"
	"github.com/readygate/readygate/internal/nodestatus"
	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/scenario"
)

// reporters are the reporters of all nodes: the reporter's own code, one for each node, in
// this process.
type reporters struct {
	dir        string // of their configuration files
	connection nodestatus.Connection
	endpoints  *endpoints
	components map[string]scenario.Component

	mu      sync.Mutex
	files   map[string]string             // by node
	running map[string]context.CancelFunc // by node
	ended   sync.WaitGroup
}

// install writes what the reporter of a node is to check. It does not run yet.
func (r *reporters) install(node string, components []string) error {
	config := reporter.Config{APIVersion: reporter.ConfigAPIVersion, Kind: reporter.ConfigKind}
	for _, name := range components {
		component := r.components[name]
		one := reporter.CheckConfig{ConditionType: component.Condition, FailureThreshold: component.FailureThreshold}
		if component.Interval != nil {
			one.Interval = check.For(component.Interval.Duration)
		}
		if component.HoldDown != nil {
			one.HoldDown = check.For(component.HoldDown.Duration)
		}
		one.HTTP = &check.HTTP{URL: r.endpoints.url(node, name)}
		config.Checks = append(config.Checks, one)
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	file := filepath.Join(r.dir, node+".yaml")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[node] = file
	return os.WriteFile(file, data, 0o600)
}

// run starts or stops the reporter of a node.
func (r *reporters) run(ctx context.Context, node string, run bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop, runs := r.running[node]; runs {
		if !run {
			stop()
			delete(r.running, node)
		}
		return nil
	}
	if !run {
		return nil
	}
	environment := reporter.Environment{Node: node, Heartbeat: reporter.DefaultHeartbeat}
	one, err := reporter.New(environment, r.files[node], r.connection)
	if err != nil {
		return fmt.Errorf("starting the reporter of %s: %w", node, err)
	}
	ctx, r.running[node] = context.WithCancel(ctx)
	r.ended.Go(func() { one.Run(ctx, nil) })
	return nil
}

// stop ends all of them, and returns when they have ended.
func (r *reporters) stop() {
	r.mu.Lock()
	for _, stop := range r.running {
		stop()
	}
	clear(r.running)
	r.mu.Unlock()
	r.ended.Wait()
}
