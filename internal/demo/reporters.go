package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
	"github.com/readygate/readygate/internal/scenario"
)

// nodeReporters are the reporters of all nodes: the reporter's own code, one for each node, in
// this process.
type nodeReporters struct {
	dir        string // of their configuration files
	connection nodestatus.Connection
	endpoints  *endpoints
	components map[string]scenario.Component

	mu         sync.Mutex
	files      map[string]string             // by node
	checks     map[string][]string           // components that it checks, by node
	running    map[string]context.CancelFunc // by node
	restarting map[string]bool               // nodes that are down, and whose reporter is to run again
	booted     map[string]time.Time          // nodes that have booted in the scenario
	ended      sync.WaitGroup
}

func newReporters(dir string, connection nodestatus.Connection, endpoints *endpoints, components map[string]scenario.Component) *nodeReporters {
	return &nodeReporters{
		dir: dir, connection: connection, endpoints: endpoints, components: components,
		files: map[string]string{}, checks: map[string][]string{}, running: map[string]context.CancelFunc{}, restarting: map[string]bool{}, booted: map[string]time.Time{},
	}
}

// install writes what the reporter of a node is to check. It does not run yet.
func (r *nodeReporters) install(node string, components []string) error {
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
		if beat := component.Heartbeat; beat != nil && (config.HeartbeatPeriod == nil || beat.Duration < config.HeartbeatPeriod.Duration) {
			config.HeartbeatPeriod = check.For(beat.Duration)
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
	r.files[node], r.checks[node] = file, components
	return os.WriteFile(file, data, 0o600)
}

// run starts or stops the reporter of a node.
func (r *nodeReporters) run(ctx context.Context, node string, run bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.restarting, node)
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
	environment := reporter.Environment{Node: node, Heartbeat: reporter.DefaultHeartbeat, Booted: r.booted[node]}
	one, err := reporter.New(environment, r.files[node], r.connection)
	if err != nil {
		return fmt.Errorf("starting the reporter of %s: %w", node, err)
	}
	ctx, r.running[node] = context.WithCancel(ctx)
	r.ended.Go(func() { one.Run(ctx, nil) })
	return nil
}

// shutDown ends the reporter of a node that goes down, and everything that it checks.
func (r *nodeReporters) shutDown(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop, runs := r.running[node]; runs {
		stop()
		delete(r.running, node)
		r.restarting[node] = true
	}
	for _, component := range r.checks[node] {
		r.endpoints.setHealth(node, component, scenario.Down)
	}
}

// boot starts the reporter of a node that has just booted, if it ran before.
func (r *nodeReporters) boot(ctx context.Context, node string) error {
	r.mu.Lock()
	due := r.restarting[node]
	r.booted[node] = time.Now()
	r.mu.Unlock()
	if !due {
		return nil
	}
	return r.run(ctx, node, true)
}

// stop ends all of them, and returns when they have ended.
func (r *nodeReporters) stop() {
	r.mu.Lock()
	for _, stop := range r.running {
		stop()
	}
	clear(r.running)
	r.mu.Unlock()
	r.ended.Wait()
}
