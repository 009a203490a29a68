package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/test/scale/report"
)

// pace says how long and how fast scenarios with a clock of their own go.
type pace struct {
	joins     float64       // nodes that join in a second
	readyIn   time.Duration // from joining until the condition is True
	steady    time.Duration // of heartbeats
	heartbeat float64       // heartbeats in a second, of all nodes together
	flaps     float64       // changes of the flapping node in a second
}

// scenario is one story. It begins and ends with all nodes held, unless it says otherwise.
type scenario func(ctx context.Context, b *bench, p pace) ([]report.Phase, error)

// stories can be told one after another in one world; those of one world are told in this order.
var stories = []struct {
	name string
	tell scenario
	// loadOnly says that the load can be measured without a subject.
	loadOnly bool
}{
	{report.Create, tellCreate, false},
	{report.Flip, tellFlip, true},
	{report.Many, tellFlip, true},
	{report.Flap, tellFlap, true},
	{report.Slow, tellSlow, false},
	{report.Busy, tellBusy, false},
	{report.Restart, tellRestart, false},
	{report.Steady, tellSteady, true},
	{report.Delete, tellDelete, false},
}

// tellCreate creates the rules over nodes that are not ready.
func tellCreate(ctx context.Context, b *bench, _ pace) ([]report.Phase, error) {
	return b.phases(ctx, change{name: "create", nodes: b.names, held: true, load: b.createRules, settled: func() error { return b.awaitCovered(ctx) }})
}

// tellFlip makes all nodes ready, and unready again if somebody is to hold them again.
func tellFlip(ctx context.Context, b *bench, _ pace) ([]report.Phase, error) {
	changes := []change{b.flipping("release", b.names, corev1.ConditionTrue)}
	if b.continuous() {
		changes = append(changes, b.flipping("hold", b.names, corev1.ConditionFalse))
	}
	return b.phases(ctx, changes...)
}

// tellFlap makes all nodes ready but one, which changes all the time.
func tellFlap(ctx context.Context, b *bench, p pace) ([]report.Phase, error) {
	flapper, others := b.names[0], b.names[1:]
	flapping, stop := context.WithCancel(ctx)
	defer stop()
	flips := 0
	var failed error
	var wait sync.WaitGroup
	flap := func() {
		_ = paced(flapping, 1<<30, 1, p.flaps, func(ctx context.Context, i int) error { // until it is stopped
			status := corev1.ConditionTrue
			if i%2 == 1 {
				status = corev1.ConditionFalse
			}
			flips++
			err := b.world.report(ctx, flapper, status)
			if err != nil && ctx.Err() == nil {
				failed = fmt.Errorf("the flapping ended: %w", err)
			}
			return err
		})
	}
	c := b.flipping("release", others, corev1.ConditionTrue)
	load := c.load
	c.load = func(ctx context.Context) error {
		wait.Go(flap)
		return load(ctx)
	}
	c.settled = func() error {
		stop()
		wait.Wait()
		return nil
	}
	phases, err := b.phases(ctx, c)
	stop()
	wait.Wait()
	for i := range phases {
		phases[i].Extra["flips"] = float64(flips)
	}
	return phases, errors.Join(err, failed, b.again(ctx))
}

// tellRestart stops the subject as a rollout does, makes a tenth of the nodes ready, and starts it again.
func tellRestart(ctx context.Context, b *bench, _ pace) ([]report.Phase, error) {
	b.stop()
	some := b.names[:max(1, len(b.names)/10)]
	if err := b.world.flip(ctx, some, corev1.ConditionTrue); err != nil {
		return nil, err
	}
	phases, err := b.phases(ctx, change{name: "restart", nodes: some, restarts: true, load: func(context.Context) error { return b.start() }})
	for i := range phases {
		phases[i].Latency = report.Quantiles{} // they waited for the subject
		phases[i].Extra["wasted patches"] = float64(phases[i].Requests["patch nodes"] - len(some))
	}
	return phases, errors.Join(err, b.again(ctx))
}

// tellSteady sends nothing but heartbeats.
func tellSteady(ctx context.Context, b *bench, p pace) ([]report.Phase, error) {
	beats := int(p.heartbeat * p.steady.Seconds())
	phases, err := b.phases(ctx, change{name: "steady", load: func(ctx context.Context) error {
		return paced(ctx, beats, b.world.size.Writers, p.heartbeat, func(ctx context.Context, i int) error {
			return b.world.heartbeat(ctx, b.names[i%len(b.names)])
		})
	}})
	for i := range phases {
		phases[i].Extra["heartbeats"] = float64(beats)
	}
	return phases, err
}

// tellDelete deletes the rules. No node is held in the end.
func tellDelete(ctx context.Context, b *bench, _ pace) ([]report.Phase, error) {
	began := time.Now()
	var rules time.Duration
	phases, err := b.phases(ctx, change{name: "delete", nodes: b.names, load: b.deleteRules, settled: func() error {
		if !b.hasRules() {
			return nil
		}
		if err := b.awaitRules(ctx, gone); err != nil {
			return fmt.Errorf("waiting until the rules are gone: %w", err)
		}
		rules = time.Since(began)
		return nil
	}})
	if rules > 0 {
		for i := range phases {
			phases[i].Extra["rule gone seconds"] = rules.Seconds()
		}
	}
	return phases, err
}

func (b *bench) continuous() bool {
	return b.world.size.Mode == string(v1alpha1.EnforcementModeContinuous)
}

// flipping is the change that sets the condition of nodes.
func (b *bench) flipping(name string, nodes []string, status corev1.ConditionStatus) change {
	return change{name: name, nodes: nodes, held: status != corev1.ConditionTrue, load: func(ctx context.Context) error {
		return b.world.flip(ctx, nodes, status)
	}}
}

// again makes all nodes unready and held again, without measuring it.
func (b *bench) again(ctx context.Context) error {
	if b.process == nil || !b.continuous() {
		return nil
	}
	quest := b.world.witness.expect(b.names, true)
	if err := b.world.flip(ctx, b.names, corev1.ConditionFalse); err != nil {
		return err
	}
	return errors.Join(b.world.witness.wait(ctx, quest, patience), b.quiet(ctx))
}

// phases measures changes one after another.
func (b *bench) phases(ctx context.Context, changes ...change) ([]report.Phase, error) {
	var phases []report.Phase
	for _, c := range changes {
		phase, err := b.measure(ctx, c)
		phases = append(phases, phase)
		if err != nil {
			return phases, err
		}
	}
	return phases, nil
}

// prepare fills the world with nodes that are not ready, and starts the subject beside them.
// It has rules, and all nodes are held, unless the rules are to be created by a scenario.
func (b *bench) prepare(ctx context.Context, withRules bool) error {
	if err := b.measureEmpty(ctx); err != nil {
		return err
	}
	say("%s: creating the nodes", b.title())
	if err := b.world.populate(ctx, corev1.ConditionFalse); err != nil {
		return err
	}
	if err := b.start(); err != nil || b.process == nil {
		return err
	}
	if err := b.quiet(ctx); err != nil || !withRules {
		return err
	}
	quest := b.world.witness.expect(b.names, true)
	if err := b.createRules(ctx); err != nil {
		return err
	}
	if err := b.world.witness.wait(ctx, quest, patience); err != nil {
		return err
	}
	return errors.Join(b.awaitCovered(ctx), b.quiet(ctx))
}

// measureEmpty reads the subject's heap while there is no node, if it tells.
func (b *bench) measureEmpty(ctx context.Context) error {
	if !b.hasRules() {
		return nil
	}
	if err := b.start(); err != nil {
		return err
	}
	err := b.quiet(ctx)
	b.heapEmpty = b.process.heap(ctx)
	b.stop()
	return err
}
