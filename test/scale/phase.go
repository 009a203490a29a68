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
	// patience is how long nodes may take to change before a run is given up.
	patience = 10 * time.Minute
	// A subject is quiet when it has not written for so many looks in a row, each glance after the
	// other. Looks count and not time: while the machine stands still, because others have it,
	// nobody can write. quietLimit is how long that is waited for.
	silence    = 10
	glance     = time.Second / 2
	quietLimit = 10 * time.Minute // thousands of events are told at a modest rate
	// window is how long work that is left is looked for.
	window = 5 * time.Second
)

// change is what a phase does to the world, and what the subject is to do about it.
type change struct {
	name string
	// load does it.
	load func(ctx context.Context) error
	// nodes all are to become held, or not.
	nodes []string
	held  bool
	// restarts says that the load starts the subject.
	restarts bool
	// settled is called when they are; nil: nothing is to be done then.
	settled func() error
}

// start is when a phase began, and what the CPUs of the machine and the API server had done by then.
type start struct {
	at        time.Time
	ticks     testenv.Ticks
	allocated int64
}

// measure makes a change, and says what followed from it.
func (b *bench) measure(ctx context.Context, c change) (phase report.Phase, err error) {
	if b.waits {
		if err := awaitCalm(ctx, lookAtMachine, restBetweenLooks); err != nil {
			return phase, err
		}
	}
	say("%s: %s", b.title(), c.name)
	phase.Name, phase.Extra = c.name, map[string]float64{"changes": float64(len(c.nodes))}
	before, err := b.gauge(ctx)
	if err != nil {
		return phase, err
	}
	quest := b.world.witness.expect(c.nodes, c.held)
	began := start{time.Now(), testenv.MachineTicks(), before.servers.allocated}
	if err := c.load(ctx); err != nil {
		return phase, fmt.Errorf("%s: the load failed: %w", c.name, err)
	}
	phase.Load = time.Since(began.at)
	phase.Took = phase.Load
	b.judgeMachine(began, &phase)
	if b.process != nil {
		err = b.follow(ctx, c, quest, began, &phase)
		phase.Latency = quantilesOf(b.world.witness.latencies(c.nodes))
	}
	return phase, errors.Join(err, b.settle(ctx, before, &phase))
}

// follow waits until the nodes have changed, and the subject has nothing more to write.
func (b *bench) follow(ctx context.Context, c change, quest *quest, began start, phase *report.Phase) error {
	if err := b.world.witness.wait(ctx, quest, patience); err != nil {
		return errors.Join(err, b.process.alive())
	}
	if !quest.last.IsZero() {
		phase.Took = quest.last.Sub(began.at)
	}
	b.judgeMachine(began, phase)
	now, err := b.world.servers(ctx)
	if err != nil {
		return err
	}
	phase.Allocated = now.allocated - began.allocated
	if c.restarts && !quest.first.IsZero() {
		phase.First = quest.first.Sub(b.process.started)
	}
	if c.settled != nil {
		err = c.settled()
	}
	err = errors.Join(err, b.quiet(ctx))
	if last := b.world.ledger.written; last.After(began.at.Add(phase.Took)) {
		phase.Quiet = last.Sub(began.at.Add(phase.Took))
	}
	return err
}

// judgeMachine says how fast the machine was until now, and how much of it others had.
func (b *bench) judgeMachine(began start, phase *report.Phase) {
	phase.Work, phase.Stolen = b.world.metronome.Mean(began.at), testenv.MachineTicks().Stolen(began.ticks)
}

// quiet waits until the subject does not write any more.
func (b *bench) quiet(ctx context.Context) error {
	if b.process == nil {
		return nil
	}
	hush := hush{last: b.world.ledger.written}
	for began := time.Now(); time.Since(began) < quietLimit; {
		if err := sleepUntil(ctx, time.Now().Add(glance)); err != nil {
			return err
		}
		if err := errors.Join(b.world.ledger.read(), b.process.alive()); err != nil {
			return err
		}
		if hush.look(b.world.ledger.written) {
			return nil
		}
	}
	return fmt.Errorf("the controller still writes after %v", quietLimit)
}

// hush is how quiet a subject is.
type hush struct {
	last  time.Time // when it wrote
	looks int       // in a row, since then
}

// look takes when the subject last wrote, and says whether it is quiet.
func (h *hush) look(written time.Time) bool {
	if h.looks++; written.After(h.last) {
		h.looks, h.last = 0, written
	}
	return h.looks >= silence
}

// gauges are read before and after a phase.
type gauges struct {
	usage   testenv.Usage
	servers servers
}

func (b *bench) gauge(ctx context.Context) (g gauges, err error) {
	if g.usage, err = b.process.usage(); err != nil {
		return g, errors.Join(err, b.process.alive())
	}
	if g.servers, err = b.world.servers(ctx); err != nil {
		return g, err
	}
	return g, b.world.ledger.reset()
}

// settle fills in what was used since before, and looks for work that is left.
func (b *bench) settle(ctx context.Context, before gauges, phase *report.Phase) error {
	if err := b.world.ledger.read(); err != nil {
		return err
	}
	phase.Requests, phase.Refused = maps.Clone(b.world.ledger.requests), maps.Clone(b.world.ledger.refused)
	after, err := b.gauge(ctx)
	if err != nil {
		return err
	}
	phase.CPU = after.usage.CPU - before.usage.CPU
	phase.EtcdBytes, phase.EtcdPuts = after.servers.bytes-before.servers.bytes, after.servers.puts-before.servers.puts
	phase.ServerCPU = after.servers.cpu - before.servers.cpu
	if b.process == nil {
		return nil
	}
	if err := sleepUntil(ctx, time.Now().Add(window)); err != nil {
		return err
	}
	left, err := b.process.usage()
	if err != nil {
		return err
	}
	phase.LeftCPU = left.CPU - after.usage.CPU
	if err := b.world.ledger.read(); err != nil {
		return err
	}
	phase.Left = maps.Clone(b.world.ledger.requests)
	return nil
}

func quantilesOf(d testenv.Distribution) report.Quantiles {
	return report.Quantiles{Count: len(d), P50: d.Quantile(50), P90: d.Quantile(90), P99: d.Quantile(99), Max: d.Quantile(100)}
}
