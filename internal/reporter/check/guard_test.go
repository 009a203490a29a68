package check_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

// runFunc is a check that is a function.
type runFunc func(context.Context) check.Observation

func (f runFunc) Run(ctx context.Context) check.Observation { return f(ctx) }

func TestAGuardGivesACheckItsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := &check.Guard{Timeout: 3 * time.Second, Check: runFunc(func(ctx context.Context) check.Observation {
			<-ctx.Done()
			return noAnswer("the time is over")
		})}
		began := time.Now()
		expect(t, guard.Run(t.Context()), noAnswer("the time is over"))
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestACheckThatNeverReturnsIsReportedAndStaysTheOnlyOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int64
		back := make(chan check.Observation)
		guard := &check.Guard{Timeout: 3 * time.Second, Check: runFunc(func(context.Context) check.Observation {
			started.Add(1)
			return <-back
		})}
		hangs := failed(check.ReasonCheckHangs, "the check did not return within 5s")
		for range 3 {
			began := time.Now()
			expect(t, guard.Run(t.Context()), hangs)
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("it took %v", took)
			}
		}
		if started.Load() != 1 {
			t.Errorf("%d runs were started", started.Load())
		}

		// It comes back at last, between two runs: that is the next result.
		back <- answers("at last")
		expect(t, guard.Run(t.Context()), answers("at last"))
		if started.Load() != 1 {
			t.Errorf("%d runs were started", started.Load())
		}

		// And then a new run starts.
		go func() { back <- answers("again") }()
		expect(t, guard.Run(t.Context()), answers("again"))
		if started.Load() != 2 {
			t.Errorf("%d runs were started", started.Load())
		}
	})
}

func TestALateResultIsDeliveredToTheNextRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := &check.Guard{Timeout: time.Second, Check: runFunc(func(context.Context) check.Observation {
			time.Sleep(4 * time.Second)
			return answers("late")
		})}
		expect(t, guard.Run(t.Context()), failed(check.ReasonCheckHangs, "the check did not return within 3s"))
		began := time.Now()
		expect(t, guard.Run(t.Context()), answers("late"))
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestCheckEndsWithTheReporter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		guard := &check.Guard{Timeout: time.Hour, Check: runFunc(func(ctx context.Context) check.Observation {
			<-ctx.Done()
			return noAnswer("ended")
		})}
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		expect(t, guard.Run(ctx), noAnswer("ended"))
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
