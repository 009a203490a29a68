package reporter

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// filePollInterval is the time between two reads of the configuration file.
const filePollInterval = 5 * time.Second

// Reporter runs checks and writes conditions.
type Reporter struct {
	node        string
	file        string // path of the configuration; empty: none
	environment Environment
	variable    func(string) string
	metrics     *Metrics
	board       *board
	client      *nodestatus.Client
	heartbeat   atomic.Int64
	config      *Config // at the start
	tasks       []*task // at the start

	running  map[string]*task // by condition type
	finished sync.WaitGroup

	content   []byte // of the file, as last read
	fileError string // the last logged error of the file
}

// New returns a reporter that is not running yet. It returns every error of the configuration.
func New(environment Environment, file string, connection nodestatus.Connection) (*Reporter, error) {
	node := environment.Node
	if node == "" {
		node = connection.NodeOf()
	}
	if node == "" {
		return nil, fmt.Errorf("%s is not set, and the token contains no node name (tokens of pods do since Kubernetes 1.30): set %s=NODE or, in a pod, add to the container\n  env: [{name: %s, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]", NodeName, NodeName, NodeName)
	}
	booted := environment.Booted
	if booted.IsZero() {
		booted = boot.Time()
	}
	r := &Reporter{
		node:        node,
		file:        file,
		environment: environment,
		variable:    os.Getenv,
		metrics:     NewMetrics(),
		board:       newBoard(booted),
		client:      nodestatus.NewClient(connection, node),
		running:     map[string]*task{},
	}
	r.client.AsNode = environment.AsNode
	var err error
	r.config, r.tasks, err = r.load()
	return r, err
}

// load reads and compiles the checks of the configuration file or of the variables.
func (r *Reporter) load() (*Config, []*task, error) {
	config, err := r.read()
	if err != nil {
		return nil, nil, err
	}
	tasks, err := config.tasks(check.Env{Node: r.node, Variable: r.variable})
	if err != nil && r.file != "" {
		err = fmt.Errorf("%s: %w", r.file, err)
	}
	return config, tasks, err
}

func (r *Reporter) read() (*Config, error) {
	if r.file == "" {
		if r.environment.Check == nil {
			return nil, errNoCheck
		}
		return &Config{Checks: []CheckConfig{*r.environment.Check}}, nil
	}
	var err error
	if r.content, err = os.ReadFile(r.file); err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	config, err := ParseConfig(r.content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.file, err)
	}
	return config, nil
}

// Run runs the checks and writes conditions until the context ends. A signal in the channel reloads the
// configuration and runs every check immediately.
func (r *Reporter) Run(ctx context.Context, now <-chan os.Signal) {
	slog.InfoContext(ctx, "Starting", "node", r.node, "checks", len(r.tasks))
	r.follow(ctx, r.config, r.tasks)
	r.finished.Go(func() {
		(&writer{client: r.client, board: r.board, metrics: r.metrics, heartbeat: func() time.Duration { return time.Duration(r.heartbeat.Load()) }}).run(ctx)
	})
	if r.environment.MetricsAddr != "" {
		r.finished.Go(func() { serve(ctx, r.environment.MetricsAddr, r.handler()) })
	}
	for poll := time.NewTicker(filePollInterval); ; {
		select {
		case <-ctx.Done():
			poll.Stop()
			r.finished.Wait()
			return
		case <-poll.C:
			r.reload(ctx)
		case <-now:
			slog.InfoContext(ctx, "Received SIGHUP; running all checks")
			r.fileError, r.content = "", nil // log an error in the file again
			r.reload(ctx)
			r.recheck()
		}
	}
}

// reload applies the configuration file if it changed. It logs an invalid file once and keeps the previous
// configuration.
func (r *Reporter) reload(ctx context.Context) {
	if r.file == "" {
		return
	}
	content, err := os.ReadFile(r.file)
	if err == nil && bytes.Equal(content, r.content) {
		return
	}
	config, tasks, err := r.load()
	r.metrics.configured(err == nil)
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), "; a valid file:")
		if what != r.fileError {
			slog.ErrorContext(ctx, "Invalid configuration file; keeping the previous configuration", "error", what)
		}
		r.fileError = what
		return
	}
	r.fileError = ""
	slog.InfoContext(ctx, "Loaded the configuration file", "checks", len(tasks))
	r.follow(ctx, config, tasks)
}

// follow starts and stops checks so that exactly the given tasks run. An unchanged task keeps running.
func (r *Reporter) follow(ctx context.Context, config *Config, tasks []*task) {
	r.heartbeat.Store(int64(valueOr(config.HeartbeatPeriod, r.environment.Heartbeat)))
	r.board.notify() // the period may be shorter now
	for conditionType, running := range r.running {
		if !slices.ContainsFunc(tasks, func(t *task) bool { return t.conditionType == conditionType }) {
			running.stop()
			delete(r.running, conditionType)
			r.board.remove(conditionType)
			r.metrics.forget(conditionType)
			slog.InfoContext(ctx, "Stopped a check; its condition on the node stays unchanged", "condition", conditionType)
		}
	}
	for _, t := range tasks {
		if running, found := r.running[t.conditionType]; found {
			if running.text == t.text {
				continue
			}
			running.stop()
		}
		r.board.put(t)
		r.running[t.conditionType] = t
		var taskCtx context.Context
		taskCtx, t.stop = context.WithCancel(ctx)
		r.finished.Go(func() { r.check(taskCtx, t) })
	}
}

// check runs one check periodically until the context ends.
func (r *Reporter) check(ctx context.Context, t *task) {
	guard := &check.Guard{Check: t.check, Timeout: t.timeout}
	before := outcome{status: nodestatus.Unknown}
	for {
		began := time.Now()
		observation := guard.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		took := time.Since(began)
		now := r.board.observe(t, observation, took, time.Now())
		r.metrics.observed(t.conditionType, now.status, observation.Result, took, now.news)
		log := slog.With("condition", t.conditionType, "reason", observation.Reason, "message", observation.Message)
		switch {
		case now.failures == 1:
			log.InfoContext(ctx, "Check failed; the condition stays True until failureThreshold and holdDown are reached", "failureThreshold", t.thresholds.Failure, "holdDown", t.thresholds.HoldDown)
		case before.status != now.status:
			log.InfoContext(ctx, "Condition changed", "status", now.status)
		case before.failures > 0 && now.failures == 0:
			log.InfoContext(ctx, "Check recovered before the condition became False", "failures", before.failures)
		}
		before = now
		pause(ctx, jitter(now.pause), t.recheck)
	}
}

// recheck runs every check immediately.
func (r *Reporter) recheck() {
	for _, t := range r.running {
		select {
		case t.recheck <- struct{}{}:
		default: // a run is requested already
		}
	}
}
