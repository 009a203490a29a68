package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// lot is a list of measurements in one set of worlds, one world per subject.
type lot struct {
	size
	pace
	pairs    int // of flips
	join     bool
	restart  bool // and steady, after the flips
	loadOnly bool // the load is also measured without a controller
}

// full measures everything that docs/explanation/performance.md shows.
func full() []lot {
	p := pace{joins: 50, readyAfter: 30 * time.Second, steady: 2 * time.Minute, heartbeats: 100}
	return []lot{
		{size: size{1000, 1}, pace: p, pairs: 5, loadOnly: true},
		{size: size{1000, 5}, pace: p, pairs: 5},
		{size: size{5000, 1}, pace: p, pairs: 5, loadOnly: true, restart: true},
		{size: size{5000, 5}, pace: p, pairs: 5},
		{size: size{5000, 1}, pace: p, join: true},
	}
}

// short is for CI: large enough to check request and byte counts.
func short() []lot {
	p := pace{joins: 50, readyAfter: 5 * time.Second, steady: 10 * time.Second, heartbeats: 100}
	return []lot{
		{size: size{200, 1}, pace: p, pairs: 1, loadOnly: true, restart: true},
		{size: size{200, 5}, pace: p, pairs: 1},
		{size: size{200, 1}, pace: p, join: true},
	}
}

// worlds prepares the world of each subject. All of them exist at the same time.
func (l lot) worlds(ctx context.Context, manager string) ([]*world, error) {
	var worlds []*world
	for _, subject := range []string{report.Floor, report.Ours, report.LoadOnly} {
		if subject == report.LoadOnly && !l.loadOnly {
			continue
		}
		w, err := newWorld(ctx, subject, manager, l.size)
		if err != nil {
			return worlds, err
		}
		worlds = append(worlds, w)
		if err := w.prepare(ctx, l.join); err != nil {
			return worlds, err
		}
	}
	return worlds, nil
}

// run measures a lot. Only one world has a load at a time, so that the runs of a pair are close in time. A subject that
// fails is not measured again.
func (l lot) run(ctx context.Context, manager string, keep func(report.Result)) error {
	worlds, err := l.worlds(ctx, manager)
	defer func() {
		for _, w := range worlds {
			_ = w.close()
		}
	}()
	if err != nil {
		return err
	}
	var errs []error
	step := func(do func(w *world) error) {
		for _, w := range slices.Clone(worlds) {
			if err := do(w); err != nil {
				errs = append(errs, err, w.close())
				worlds = slices.DeleteFunc(worlds, func(other *world) bool { return other == w })
			}
		}
	}
	for pair := 1; pair <= l.pairs; pair++ {
		step(func(w *world) error {
			if w.subject == report.LoadOnly && pair > 1 {
				return nil
			}
			return w.flip(ctx, pair, keep)
		})
		slices.Reverse(worlds) // alternate the order of the subjects
	}
	if l.restart {
		step(func(w *world) error {
			if w.process == nil {
				return nil
			}
			if err := w.restart(ctx, keep); err != nil {
				return err
			}
			return w.steady(ctx, l.pace, keep)
		})
	}
	if l.join {
		step(func(w *world) error { return w.joinNodes(ctx, l.pace, keep) })
	}
	return errors.Join(errs...)
}
