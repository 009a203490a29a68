package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/readygate/readygate/internal/testenv"
)

const delayCondition = "bench.example.com/Ready"

// delays are the times from the first 200 of a component to the condition, some components at the same time.
func (l *lab) delays(ctx context.Context, starts, parallel int) (testenv.Distribution, error) {
	var (
		mu      sync.Mutex
		all     testenv.Distribution
		failure error
		workers sync.WaitGroup
	)
	slots := make(chan struct{}, parallel)
	for i := range starts {
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			delay, err := l.delay(ctx, fmt.Sprintf("delay-%d", i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = fmt.Errorf("start %d: %w", i, err)
				return
			}
			all = append(all, delay)
		})
	}
	workers.Wait()
	return all, failure
}

// delay starts a reporter and makes its component ready at a random time after the condition is False.
func (l *lab) delay(ctx context.Context, node string) (time.Duration, error) {
	p, err := l.start(ctx, node, []string{"CONDITION_TYPE=" + delayCondition, "CHECK_ENDPOINT=" + l.components.URL + "/" + node, "CHECK_INTERVAL=15s"})
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if _, err := l.await(ctx, p, seen{node, delayCondition, "False"}); err != nil {
		return 0, err
	}
	if err := sleep(ctx, rand.N(2*time.Second)); err != nil { // longer than the pause between two checks
		return 0, err
	}
	ready := l.setReady(node)
	written, err := l.await(ctx, p, seen{node, delayCondition, "True"})
	return written.Sub(ready), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
