package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/test/scale/report"
)

// stageLimit is how many nodes the worlds of a stage have: of larger ones a machine has room for one.
const stageLimit = 5000

// sideBySide says whether the worlds of all subjects are there at the same time. Flips end as they
// began, so they can be told again and again in the same world, and a run and the floor's next to it
// are a minute apart and not ten: how fast a machine is changes within minutes.
func (l lot) sideBySide() bool {
	return slices.Equal(l.scenarios, []string{report.Flip}) && l.size.Nodes <= stageLimit && l.size.Mode == string(v1alpha1.EnforcementModeContinuous) && l.tries > 1
}

// stage is a world for each subject of a lot. Only one of them has something to do at a time.
type stage struct {
	benches map[string]*bench
	played  map[string]bool  // those that have been measured before
	broken  map[string]error // why others are not measured
}

// openStage prepares the worlds, one after the other.
func openStage(ctx context.Context, l lot, keep func(report.Result)) *stage {
	s := &stage{benches: map[string]*bench{}, played: map[string]bool{}, broken: map[string]error{}}
	for _, subject := range l.subjects {
		b, err := l.newBench(ctx, subject)
		if err == nil {
			s.benches[subject.name] = b
			err = l.prepare(ctx, b, keep)
		}
		if err != nil {
			s.broken[subject.name] = err
		}
	}
	return s
}

// play tells the scenarios to a subject in its world. After a failure nobody knows how that is.
func (s *stage) play(l lot, ctx context.Context, subject subject, keep func(report.Result)) error {
	if err := s.broken[subject.name]; err != nil {
		return fmt.Errorf("not measured any more: %w", err)
	}
	err := s.tell(ctx, l, subject.name, keep)
	if err != nil {
		s.broken[subject.name] = err
	}
	return err
}

// tell starts a subject anew that knows the story: what happens again costs less than what is new.
func (s *stage) tell(ctx context.Context, l lot, name string, keep func(report.Result)) error {
	b := s.benches[name]
	if s.played[name] {
		if err := b.restart(ctx); err != nil {
			return err
		}
	}
	s.played[name] = true
	return l.tell(ctx, b, keep)
}

func (s *stage) close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.benches)) {
		errs = append(errs, s.benches[name].close())
	}
	return errors.Join(errs...)
}
