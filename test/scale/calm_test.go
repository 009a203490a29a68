package main

import (
	"context"
	"errors"
	"testing"
)

func TestAPhaseWaitsForACalmMachine(t *testing.T) {
	share := func(of float64) *float64 { return &of }
	for name, c := range map[string]struct {
		looks []*float64
		rests int
	}{
		"calm":                     {[]*float64{share(0.01)}, 0},
		"nobody knows":             {[]*float64{nil}, 0},
		"calm after a while":       {[]*float64{share(0.3), share(0.16), share(0.15)}, 2},
		"never calm: it goes on":   {[]*float64{share(0.2)}, looks},
		"unknown after a busy one": {[]*float64{share(0.2), nil}, 1},
	} {
		looked, rested := 0, 0
		look := func(context.Context) *float64 {
			looked++
			return c.looks[min(looked, len(c.looks))-1]
		}
		rest := func(context.Context) error { rested++; return nil }
		if err := awaitCalm(t.Context(), look, rest); err != nil || rested != c.rests {
			t.Errorf("%s: it rested %d times, not %d (%v)", name, rested, c.rests, err)
		}
	}
}

func TestWaitingForACalmMachineEndsWithTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	look := func(context.Context) *float64 { busy := 0.5; cancel(); return &busy }
	if err := awaitCalm(ctx, look, restBetweenLooks); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
