package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

const (
	// looks is how often a phase looks whether other guests of the host leave the machine alone, with
	// a rest between, before it begins all the same. They come and go within minutes.
	looks    = 6
	calmRest = 30 * time.Second
	// lookTime is how long a look takes: what is stolen shows only while there is work to do.
	lookTime = 3 * time.Second
)

// awaitCalm waits until a look at the machine finds it calm. It knows nothing of what was measured.
func awaitCalm(ctx context.Context, look func(context.Context) *float64, rest func(context.Context) error) error {
	for i := range looks {
		stolen := look(ctx)
		if stolen == nil || !report.Disturbs(*stolen) {
			return ctx.Err()
		}
		say("other guests of the host take %.0f %% of the CPU time: waiting for up to %s", 100**stolen, time.Duration(looks-i)*calmRest)
		if err := rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// restBetweenLooks leaves the machine alone for a while.
func restBetweenLooks(ctx context.Context) error {
	return sleepUntil(ctx, time.Now().Add(calmRest))
}

// lookAtMachine keeps all cores busy for a moment and returns the share of their time that others
// had; nil: not known.
func lookAtMachine(ctx context.Context) *float64 {
	before := testenv.MachineTicks()
	end := time.Now().Add(lookTime)
	var spinning sync.WaitGroup
	for range runtime.NumCPU() {
		spinning.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) { //revive:disable-line:empty-block // a core that yields now and then is taken away
			}
		})
	}
	spinning.Wait()
	return testenv.MachineTicks().Stolen(before)
}
