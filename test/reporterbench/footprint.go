package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/readygate/readygate/internal/testenv"

	corev1 "k8s.io/api/core/v1"
)

// Budgets of a reporter.
const (
	budgetMemory = "≤ 12 MiB"
	budgetSize   = "≤ 15 MB"
	budgetCPU    = "≤ 1 %"
	budgetLag    = "p99 ≤ 1.20 s"
)

const (
	// watchedChecks is how many checks our reporter runs while it is watched; others can run one.
	watchedChecks   = 3
	watchedInterval = time.Second
	// patience is how long a reporter may take for its word.
	patience = 3 * time.Minute
)

// footprint is what a subject was seen to take.
type footprint struct {
	subject  subject
	checks   int
	user     string
	process  *process
	begin    time.Time
	before   testenv.Usage
	after    testenv.Usage
	period   time.Duration
	requests map[string]int
}

// footprints watches all subjects at the same time, each on a node of its own.
func (l *lab) footprints(ctx context.Context, subjects []subject, period time.Duration) error {
	var all []*footprint
	var failures error
	size := 0
	for _, s := range subjects {
		var f *footprint
		var err error
		if f, size, err = l.watch(ctx, s); err != nil {
			failures = errors.Join(failures, fmt.Errorf("footprint of %s: %w", s.name, err))
			continue
		}
		defer f.process.end()
		all = append(all, f)
	}
	say("watching what %d binaries take, for %v", len(all), period)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(period):
	}
	var measured []*footprint
	for _, f := range all {
		if err := f.finish(l.plane.AuditLog()); err != nil {
			failures = errors.Join(failures, fmt.Errorf("footprint of %s: %w (%s)", f.subject.name, err, f.process.lastWords()))
			continue
		}
		measured = append(measured, f)
	}
	return errors.Join(failures, printFootprints(measured, period, size))
}

// watch starts a subject, and begins to count when all its conditions are True.
func (l *lab) watch(ctx context.Context, s subject) (f *footprint, size int, err error) {
	node := "footprint-" + s.name
	f = &footprint{subject: s, checks: 1}
	if s.ours {
		f.checks = watchedChecks
	}
	if size, err = l.newNode(ctx, node); err != nil {
		return nil, 0, err
	}
	if f.user, err = l.newAccount(ctx, node, s.roles()...); err != nil {
		return nil, 0, err
	}
	var checks []check
	for i := range f.checks {
		name := fmt.Sprintf("%s-%d", node, i)
		l.endpoints.heal(name)
		checks = append(checks, check{fmt.Sprintf("bench.example.com/Ready%d", i), l.endpoints.url(name), watchedInterval})
	}
	if f.process, err = l.startProcess(ctx, s, node, node, checks, nil); err != nil {
		return nil, 0, err
	}
	if err := l.allTrue(ctx, f.process, node, checks); err != nil {
		f.process.end()
		return nil, 0, err
	}
	f.begin = time.Now()
	f.before, err = testenv.UsageOf(f.process.cmd.Process.Pid)
	return f, size, err
}

func (l *lab) allTrue(ctx context.Context, p *process, node string, checks []check) error {
	ctx, cancel := p.alive(ctx)
	defer cancel()
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v: %s", patience, p.lastWords()))
	defer stop()
	for _, c := range checks {
		if _, err := l.witness.await(ctx, sight{node, c.conditionType, corev1.ConditionTrue}); err != nil {
			return err
		}
	}
	return nil
}

func (f *footprint) finish(auditLog string) (err error) {
	if f.after, err = testenv.UsageOf(f.process.cmd.Process.Pid); err != nil {
		return err
	}
	f.period = time.Since(f.begin)
	f.requests, err = requests(auditLog, f.user)
	return err
}

func printFootprints(all []*footprint, period time.Duration, nodeSize int) error {
	t := table{title: fmt.Sprintf("Footprint: checks at %v, watched for %v, on nodes of %d KB", watchedInterval, period, nodeSize/1000)}
	t.row("", "checks", "binary", "resident", "of it anon", "file", "peak", "CPU", "requests to the API server since the start")
	var err error
	for _, f := range all {
		size, wasStripped, sizeErr := strippedSize(f.subject.path)
		if sizeErr != nil {
			err = errors.Join(err, sizeErr)
		}
		if !wasStripped {
			t.note("%s is not stripped; its size is said as if it were", f.subject.name)
		}
		cpu := 100 * (f.after.CPU - f.before.CPU).Seconds() / f.period.Seconds()
		t.row(f.subject.name, strconv.Itoa(f.checks), megabytes(size), mebibytes(f.after.RSS), mebibytes(f.after.Anon), mebibytes(f.after.File),
			mebibytes(f.after.Peak), fmt.Sprintf("%.2f %%", cpu), listed(f.requests))
	}
	t.row("budget", "", budgetSize, budgetMemory, "", "", "", budgetCPU, "")
	t.note("CPU is of one core, once all conditions are True: the start is not counted")
	if len(all) > 1 {
		t.note("readygate runs %d checks in one process; another reporter knows one check per process, and needs %d processes, each with CPU, anon memory and requests as in its row", watchedChecks, watchedChecks)
		t.note("other reporters were granted to get nodes, besides the role of the guide")
	}
	t.print()
	return err
}
