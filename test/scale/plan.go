package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// lot is what is measured in one world for each of some subjects.
type lot struct {
	scenarios  []string
	size       size
	bystanders int
	pace       pace
	subjects   []subject
	repeats    int // how often; 0: once
	tries      int // of a pair that is disturbed, at most; 0: one
	before     int // pairs that were measured before
}

// measure tells the scenarios of a lot to each of its subjects, each in a world of its own. They
// take turns, so that what else the machine does meets all of them. One that fails does not keep
// the others from being measured.
func (l lot) measure(ctx context.Context, keep func(report.Result)) (err error) {
	play := lot.measureOne
	if l.sideBySide() {
		stage := openStage(ctx, l, keep)
		defer func() { err = errors.Join(err, stage.close()) }()
		play = stage.play
	}
	return l.measureBy(ctx, play, keep)
}

// measureBy measures pair after pair, and those again that were disturbed.
func (l lot) measureBy(ctx context.Context, play player, keep func(report.Result)) error {
	var errs []error
	for pair := l.before + 1; pair <= l.before+max(1, l.repeats); pair++ {
		left := l
		if pair > l.before+1 {
			left = l.withoutLoad()
		}
		for try := 1; len(left.scenarios) > 0 && ctx.Err() == nil; try++ {
			disturbed, err := left.measurePair(ctx, report.Turn{Pair: pair, Try: try}, play, keep)
			errs = append(errs, err)
			left = left.again(try, disturbed)
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// player tells the scenarios of a lot to one of its subjects.
type player func(l lot, ctx context.Context, s subject, keep func(report.Result)) error

// measurePair measures every subject once, and says which scenarios were disturbed for any of them.
func (l lot) measurePair(ctx context.Context, turn report.Turn, play player, keep func(report.Result)) (disturbed []string, _ error) {
	var errs []error
	for i, s := range l.order(turn.Pair) {
		if ctx.Err() != nil {
			break
		}
		turn.Place = i + 1
		err := play(l, ctx, s, func(r report.Result) {
			if s.name != report.Nobody && r.Disturbed() {
				say("%s, %d nodes: %s was disturbed by other guests of the host", s.name, l.size.Nodes, r.Scenario)
				disturbed = append(disturbed, r.Scenario)
			}
			keep(r.At(turn))
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %d nodes: %w", s.name, l.size.Nodes, err))
			say("FAILED: %v", errs[len(errs)-1])
		}
	}
	return disturbed, errors.Join(errs...)
}

// order is that of the subjects: the first in one pair is the last in the next.
func (l lot) order(pair int) []subject {
	subjects := slices.Clone(l.subjects)
	if pair%2 == 0 {
		slices.Reverse(subjects)
	}
	return subjects
}

// again is what is to be measured once more after so many tries: scenarios that were disturbed, of
// subjects that are compared with the floor.
func (l lot) again(tries int, disturbed []string) lot {
	l = l.withoutLoad()
	compared := len(l.subjects) > 1 && slices.ContainsFunc(l.subjects, func(s subject) bool { return s.name == report.Floor })
	l.scenarios = slices.DeleteFunc(slices.Clone(l.scenarios), func(name string) bool { return !compared || tries >= l.tries || !slices.Contains(disturbed, name) })
	return l
}

// withoutLoad leaves out the load alone: of it only bytes count, and they are always the same.
func (l lot) withoutLoad() lot {
	l.subjects = slices.DeleteFunc(slices.Clone(l.subjects), func(s subject) bool { return s.name == report.Nobody })
	return l
}

// trial is the size of a lot, as results tell it.
func (l lot) trial(scenario string) report.Result {
	return report.Result{Scenario: scenario, Nodes: l.size.Nodes, Rules: l.size.Rules + l.bystanders, Mode: l.size.Mode, Writers: l.size.Writers}
}

// measureOne makes a world for one telling.
func (l lot) measureOne(ctx context.Context, s subject, keep func(report.Result)) (err error) {
	b, err := l.newBench(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if slices.Equal(l.scenarios, []string{report.Join}) {
		return l.join(ctx, b, keep)
	}
	if err := l.prepare(ctx, b, keep); err != nil {
		return err
	}
	return l.tell(ctx, b, keep)
}

func (l lot) newBench(ctx context.Context, s subject) (*bench, error) {
	b, err := newBench(ctx, s, l.size, l.bystanders)
	if err == nil {
		b.waits = l.tries > 1 && s.name != report.Nobody // where only counts matter, nobody waits
	}
	return b, err
}

// prepare makes the nodes, and the rules unless they are what it is about.
func (l lot) prepare(ctx context.Context, b *bench, keep func(report.Result)) error {
	err := b.prepare(ctx, !slices.Contains(l.scenarios, report.Create))
	if err != nil {
		keep(b.result(ctx, l.scenarios[0], nil, err))
	}
	return err
}

// tell tells the scenarios, one after the other.
func (l lot) tell(ctx context.Context, b *bench, keep func(report.Result)) error {
	for _, story := range stories {
		if !slices.Contains(l.scenarios, story.name) || b.process == nil && !story.loadOnly {
			continue
		}
		phases, err := story.tell(ctx, b, l.pace)
		keep(b.result(ctx, story.name, phases, err))
		if err != nil {
			return err
		}
	}
	return nil
}

// join has no nodes at first, and rules whose births are covered.
func (l lot) join(ctx context.Context, b *bench, keep func(report.Result)) error {
	if err := errors.Join(b.start(), b.quiet(ctx)); err != nil {
		return err
	}
	if err := b.createRules(ctx); err != nil {
		return err
	}
	if err := b.awaitCovered(ctx); err != nil {
		return err
	}
	if err := b.quiet(ctx); err != nil {
		return err
	}
	phases, err := tellJoin(ctx, b, l.pace)
	keep(b.result(ctx, report.Join, phases, err))
	return err
}

// withoutFloor are those that are compared with it.
func withoutFloor(subjects []subject) []subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s subject) bool { return s.name == report.Floor })
}

// usual is the pace of a real cluster, or somewhat more.
var usual = pace{joins: 50, readyIn: 30 * time.Second, steady: 2 * time.Minute, heartbeat: 100, flaps: 10}

// full is what docs/performance.md is made from.
func full(subjects []subject, nobody subject, writers int, mode string) []lot {
	controllers := withoutFloor(subjects)
	of := func(nodes, rules int) size { return size{Nodes: nodes, Rules: rules, Writers: writers, Mode: mode} }
	proxied := of(200, 1)
	proxied.Proxied = true
	flips := func(nodes, rules, pairs int) lot {
		return lot{scenarios: []string{report.Flip}, size: of(nodes, rules), subjects: subjects, repeats: pairs}
	}
	// Even numbers of pairs: each subject is as often the first; most where one takes less than two
	// minutes and differs much from the next. Ten times the nodes are next to the fewest.
	lots := []lot{
		flips(1000, 1, 4), flips(2000, 1, 2), flips(500, 1, 4), flips(5000, 1, 4), flips(5000, 5, 6), flips(1000, 5, 8), flips(500, 10, 2),
		{scenarios: []string{report.Create, report.Restart, report.Steady, report.Delete}, size: of(5000, 1), subjects: subjects},
	}
	// The bytes of the load, which differ little from run to run and not at all by rules.
	for _, nodes := range []int{500, 1000, 2000, 5000} {
		lots = append(lots, lot{scenarios: []string{report.Flip}, size: of(nodes, 1), subjects: []subject{nobody}})
	}
	lots = append(lots, []lot{
		{scenarios: []string{report.Join}, size: of(5000, 1), subjects: subjects},
		// What the load and the floor do does not depend on rules that are not there for them.
		{scenarios: []string{report.Many}, size: of(1000, 1), bystanders: 99, subjects: controllers},
		{scenarios: []string{report.Flap}, size: of(500, 1), subjects: append(slices.Clone(subjects), nobody)},
		{scenarios: []string{report.Slow, report.Busy}, size: proxied, subjects: subjects},
	}...)
	for i := range lots {
		lots[i].pace, lots[i].tries = usual, report.Tries
	}
	return lots
}

// large is as many nodes as the largest clusters have.
func large(subjects []subject, nobody subject, writers int, mode string) []lot {
	return []lot{{
		scenarios: []string{report.Flip}, size: size{Nodes: 15000, Rules: 1, Writers: writers, Mode: mode}, pace: usual,
		subjects: append(slices.Clone(subjects), nobody), tries: report.Tries,
	}}
}

// short is what CI runs: small, and good enough to count, disturbed or not.
func short(subjects []subject, nobody subject, writers int, mode string) []lot {
	quick := usual
	quick.steady, quick.readyIn = 10*time.Second, 5*time.Second
	controllers := withoutFloor(subjects)
	return []lot{
		{scenarios: []string{report.Create, report.Flip, report.Flap, report.Restart, report.Steady, report.Delete}, size: size{Nodes: 200, Rules: 1, Writers: writers, Mode: mode}, pace: quick,
			subjects: append(slices.Clone(subjects), nobody)},
		{scenarios: []string{report.Flip}, size: size{Nodes: 200, Rules: 5, Writers: writers, Mode: mode}, pace: quick, subjects: subjects},
		{scenarios: []string{report.Join}, size: size{Nodes: 200, Rules: 1, Writers: writers, Mode: mode}, pace: quick, subjects: subjects},
		{scenarios: []string{report.Slow, report.Busy}, size: size{Nodes: 100, Rules: 1, Writers: writers, Mode: mode, Proxied: true}, pace: quick, subjects: controllers},
	}
}
