package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
	"github.com/readygate/readygate/internal/scenario"
)

// nodeReporters runs the reporter's code in this process, one reporter per node.
type nodeReporters struct {
	dir        string // of their configuration files
	connection nodestatus.Connection
	endpoints  *endpoints
	components map[string]scenario.Component
	programs   *errgroup.Group
	nodes      map[string]*nodeReporter
}

// nodeReporter is the reporter of one node.
type nodeReporter struct {
	file       string
	components []string           // the checked components
	stop       context.CancelFunc // nil if not running
	restarts   bool               // the node is down; start the reporter at the boot
	booted     time.Time          // zero if the node has not rebooted in the scenario
}

func newReporters(dir string, connection nodestatus.Connection, endpoints *endpoints, components map[string]scenario.Component, programs *errgroup.Group) *nodeReporters {
	return &nodeReporters{dir: dir, connection: connection, endpoints: endpoints, components: components, programs: programs, nodes: map[string]*nodeReporter{}}
}

// reporterConnection returns the connection of all reporters to the API server, with the role of a reporter.
func (s *session) reporterConnection(ctx context.Context) (connection nodestatus.Connection, err error) {
	config, err := s.as(ctx, Namespace, reporterAccount, nil)
	if err != nil {
		return connection, err
	}
	file := filepath.Join(s.dir, "reporter.kubeconfig")
	if err := controlplane.WriteKubeconfig(file, config); err != nil {
		return connection, err
	}
	return nodestatus.FromKubeconfig(file)
}

// install writes the configuration of a node's reporter. It does not start the reporter.
func (r *nodeReporters) install(node string, components []string) error {
	config := reporter.Config{APIVersion: reporter.ConfigAPIVersion, Kind: reporter.ConfigKind}
	for _, name := range components {
		component := r.components[name]
		one := reporter.CheckConfig{ConditionType: component.Condition, FailureThreshold: component.FailureThreshold}
		one.HTTP = &check.HTTP{URL: r.endpoints.url(node, name)}
		if component.Interval != nil {
			one.Interval = check.For(component.Interval.Duration)
		}
		if component.HoldDown != nil {
			one.HoldDown = check.For(component.HoldDown.Duration)
		}
		if beat := component.Heartbeat; beat != nil && (config.HeartbeatPeriod == nil || beat.Duration < config.HeartbeatPeriod.Duration) {
			config.HeartbeatPeriod = check.For(beat.Duration)
		}
		config.Checks = append(config.Checks, one)
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	file := filepath.Join(r.dir, node+".yaml")
	r.nodes[node] = &nodeReporter{file: file, components: components}
	return os.WriteFile(file, data, 0o600)
}

// run starts or stops the reporter of a node.
func (r *nodeReporters) run(ctx context.Context, node string, run bool) error {
	one := r.nodes[node]
	switch {
	case one == nil && run:
		return fmt.Errorf("starting the reporter of %s: no component of the node has a node condition", node)
	case one == nil:
		return nil
	}
	one.restarts = false
	switch {
	case one.stop != nil && !run:
		one.stop()
		one.stop = nil
		return nil
	case run == (one.stop != nil):
		return nil
	}
	environment := reporter.Environment{Node: node, Heartbeat: reporter.DefaultHeartbeat, Booted: one.booted}
	program, err := reporter.New(environment, one.file, r.connection)
	if err != nil {
		return fmt.Errorf("starting the reporter of %s: %w", node, err)
	}
	ctx, one.stop = context.WithCancel(ctx)
	r.programs.Go(func() error {
		program.Run(ctx, nil)
		return nil
	})
	return nil
}

// shutDown stops the reporter of a node that goes down, and sets its components down.
func (r *nodeReporters) shutDown(node string) {
	one := r.nodes[node]
	if one == nil {
		return
	}
	if one.stop != nil {
		one.stop()
		one.stop, one.restarts = nil, true
	}
	for _, component := range one.components {
		r.endpoints.setHealth(node, component, scenario.Down)
	}
}

// boot starts the reporter of a node after a reboot if it ran before.
func (r *nodeReporters) boot(ctx context.Context, node string) error {
	one := r.nodes[node]
	if one == nil {
		return nil
	}
	one.booted = time.Now()
	if !one.restarts {
		return nil
	}
	return r.run(ctx, node, true)
}
