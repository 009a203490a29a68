package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testenv"
)

const lagType = "bench.example.com/NetworkReady"

// start is one start of a reporter.
type start struct {
	first time.Duration // from the start of the process to its first word
	lag   time.Duration // from the endpoint that is ready to the condition that is True
}

// lags measures all subjects, with and without limits, and pollers beside them.
func (l *lab) lags(ctx context.Context, subjects []subject, limited *limits, noLimits error, starts, parallel int) error {
	t := table{title: fmt.Sprintf("Lag: from an endpoint that answers 200 to a condition that is True, over %d starts, CHECK_INTERVAL=%v", starts, guideInterval)}
	t.row("", "p50", "p90", "p99", "max", "budget", "first word p50", "max", "measured")
	var failures error
	for _, s := range subjects {
		if _, err := l.newAccount(ctx, s.name, s.roles()...); err != nil {
			return err
		}
		run := func(what string, limited *limits) {
			say("lag of %s %s", s.name, what)
			controlled, err := l.control(ctx)
			if err != nil {
				failures = errors.Join(failures, err)
				return
			}
			measured, err := l.lag(ctx, s, limited, starts, parallel)
			failures = errors.Join(failures, err)
			t.row(lagRow(s, what, measured, starts)...)
			t.row(append([]string{"  the API server alone, meanwhile"}, append(quantiles(controlled()), "", "", "", "")...)...)
		}
		run("without limit", nil)
		if noLimits == nil && ctx.Err() == nil {
			run("with "+sidecar, limited)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if noLimits != nil {
		t.note("with %s: SKIPPED: %v", sidecar, noLimits)
	}
	err := l.pollers(ctx, &t, starts)
	t.note("first word: from the start of the process to the condition False; %d processes at a time", parallel)
	t.note("the API server alone: from a write of the bench to its being seen; what is slow there is not due to the reporter")
	if starts < 100 {
		t.note("of fewer than 100 starts, p99 is the longest")
	}
	t.note("the endpoint becomes ready at a random moment within %v after the first word for readygate, and within the interval for others", subjects[0].phase())
	t.print()
	return errors.Join(failures, err)
}

func lagRow(s subject, what string, measured []start, starts int) []string {
	var lag, first testenv.Distribution
	for _, one := range measured {
		lag = append(lag, one.lag)
		first = append(first, one.first)
	}
	budget := ""
	if s.ours {
		budget = budgetLag
	}
	row := append([]string{s.name + " " + what}, quantiles(lag)...)
	return append(row, budget, quantiles(first)[0], quantiles(first)[3], fmt.Sprintf("%d of %d", len(measured), starts))
}

// lag starts the subject many times, some at a time. The error says what of it could not be
// measured.
func (l *lab) lag(ctx context.Context, s subject, limited *limits, starts, parallel int) ([]start, error) {
	var (
		mu       sync.Mutex
		measured []start
		failed   []error
		workers  sync.WaitGroup
		began    = time.Now()
	)
	work := make(chan int)
	for range parallel {
		workers.Go(func() {
			for i := range work {
				one, err := l.startOnce(ctx, s, limited, i)
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				} else {
					measured = append(measured, one)
				}
				if done := len(measured) + len(failed); done%max(10, starts/4) == 0 && done < starts && ctx.Err() == nil {
					say("%d of %d starts, about %v more", done, starts, (time.Since(began) / time.Duration(done) * time.Duration(starts-done)).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	for i := 0; i < starts && ctx.Err() == nil; i++ {
		work <- i
	}
	close(work)
	workers.Wait()
	if len(failed) > 0 {
		return measured, fmt.Errorf("%d of %d starts of %s could not be measured; the first: %w", len(failed), starts, s.name, failed[0])
	}
	return measured, nil
}

// startOnce starts the subject on a new node, and makes the component ready once it has said that it is not.
func (l *lab) startOnce(ctx context.Context, s subject, limited *limits, i int) (one start, err error) {
	node := fmt.Sprintf("%s-%d", s.name, i)
	var groups []string
	if limited != nil {
		node += "-limited"
		if groups, err = limited.group(node); err != nil {
			return one, fmt.Errorf("making a control group: %w", err)
		}
		defer func() { err = errors.Join(err, removeGroup(groups)) }()
	}
	if _, err := l.newNode(ctx, node); err != nil {
		return one, err
	}
	p, err := l.startProcess(ctx, s, s.name, node, []check{{lagType, l.endpoints.url(node), guideInterval}}, groups)
	if err != nil {
		return one, err
	}
	defer p.end()
	began := time.Now()
	alive, cancel := p.alive(ctx)
	defer cancel()
	alive, stop := context.WithTimeoutCause(alive, patience, fmt.Errorf("not within %v", patience))
	defer stop()
	said, err := l.witness.await(alive, sight{node, lagType, corev1.ConditionFalse})
	if err != nil {
		return one, err
	}
	if err := sleep(alive, rand.N(s.phase())); err != nil {
		return one, err
	}
	healed := l.endpoints.heal(node)
	written, err := l.witness.await(alive, sight{node, lagType, corev1.ConditionTrue})
	return start{first: said.Sub(began), lag: written.Sub(healed)}, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
