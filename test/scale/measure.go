package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

const (
	// changeTimeout is how long taints may take to change, and writes of the subject to end.
	changeTimeout = 10 * time.Minute
	// A subject is quiet if the audit log has no new write of it at quietPolls polls in a row. Polls are counted, not
	// seconds: nothing is written while the host pauses the machine.
	quietPolls = 10
	quietPoll  = time.Second / 2
	// leftWindow is how long requests of a quiet subject are counted.
	leftWindow = 5 * time.Second
)

// change is what a phase does to the cluster, and which taints the subject must change.
type change struct {
	phase string
	load  func(ctx context.Context) error
	nodes []string
	held  bool // the nodes must have the taints afterwards
}

// measure makes a change and measures what follows from it.
func (w *world) measure(ctx context.Context, pair int, c change) (report.Result, error) {
	say("%s, %d nodes, %d rules: %s", w.subject, w.Nodes, w.Rules, c.phase)
	r := report.Result{Phase: c.phase, Subject: w.subject, Nodes: w.Nodes, Rules: w.Rules, Pair: pair, Changes: len(c.nodes)}
	err := w.measureInto(ctx, c, &r)
	if err != nil {
		err = fmt.Errorf("%s, %d nodes, %d rules, %s: %w", w.subject, w.Nodes, w.Rules, c.phase, err)
		r.Problem = err.Error()
	}
	return r, err
}

func (w *world) measureInto(ctx context.Context, c change, r *report.Result) error {
	before, err := w.gauge(ctx)
	if err != nil {
		return err
	}
	if err := w.log.reset(); err != nil {
		return err
	}
	changed, began := w.witness.expect(c.nodes, c.held), time.Now()
	if err := c.load(ctx); err != nil {
		return fmt.Errorf("the load failed: %w", err)
	}
	ended := time.Now()
	if w.process != nil {
		if err := w.witness.await(ctx, changed); err != nil {
			return errors.Join(err, w.process.alive())
		}
		if !changed.last.IsZero() {
			ended = changed.last
		}
		settled, err := w.counters(ctx)
		if err != nil {
			return err
		}
		r.Allocated = settled.allocated - before.allocated
		if err := w.quiet(ctx); err != nil {
			return err
		}
	}
	r.Took, r.Quiet = ended.Sub(began), max(0, w.log.written.Sub(ended))
	latencies := w.witness.latencies(c.nodes)
	r.P50, r.P99 = latencies.Quantile(50), latencies.Quantile(99)
	return w.finish(ctx, before, r)
}

// finish fills in what was used since the gauges were read, and counts the requests that are left.
func (w *world) finish(ctx context.Context, before gauges, r *report.Result) error {
	after, err := w.gauge(ctx)
	if err != nil {
		return err
	}
	r.CPU, r.Peak, r.EtcdBytes = after.usage.CPU-before.usage.CPU, after.usage.Peak, after.etcdBytes-before.etcdBytes
	r.Requests = maps.Clone(w.log.requests)
	if w.process == nil {
		return nil
	}
	if err := errors.Join(w.log.reset(), sleep(ctx, leftWindow), w.log.read()); err != nil {
		return err
	}
	r.Left = maps.Clone(w.log.requests)
	return nil
}

// quiet waits until the subject no longer writes.
func (w *world) quiet(ctx context.Context) error {
	last, polls := w.log.written, 0
	for began := time.Now(); time.Since(began) < changeTimeout; {
		if err := errors.Join(sleep(ctx, quietPoll), w.log.read(), w.process.alive()); err != nil {
			return err
		}
		if polls++; w.log.written.After(last) {
			last, polls = w.log.written, 0
		}
		if polls >= quietPolls {
			return nil
		}
	}
	return fmt.Errorf("the controller still writes after %v", changeTimeout)
}

// gauges are read before and after a phase.
type gauges struct {
	usage testenv.Usage // of the subject
	counters
}

func (w *world) gauge(ctx context.Context) (g gauges, err error) {
	if w.process != nil {
		if g.usage, err = testenv.UsageOf(w.process.cmd.Process.Pid); err != nil {
			return g, errors.Join(err, w.process.alive())
		}
	}
	g.counters, err = w.counters(ctx)
	return g, err
}
