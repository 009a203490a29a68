package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

const (
	// slowness is added to every request of the subject.
	slowness = 500 * time.Millisecond
	// served is how many requests a second a busy API server takes of the subject.
	served = 50
)

// tellSlow makes all nodes ready while every request of the subject takes long.
func tellSlow(ctx context.Context, b *bench, _ pace) ([]report.Phase, error) {
	return b.tellFault(ctx, testenv.Fault{Delay: slowness, Of: testenv.Arrival.IsWork})
}

// tellBusy makes all nodes ready while most requests of the subject are answered with 429.
func tellBusy(ctx context.Context, b *bench, _ pace) ([]report.Phase, error) {
	var second int64
	taken := 0
	refused := map[string]int{}
	// The proxy asks for one request at a time.
	exceeds := func(a testenv.Arrival) bool {
		if !a.IsWork() {
			return false
		}
		if now := a.At.Unix(); now != second {
			second, taken = now, 0
		}
		taken++
		if taken <= served {
			return false
		}
		refused[a.What()]++
		return true
	}
	phases, err := b.tellFault(ctx, testenv.Fault{Code: http.StatusTooManyRequests, RetryAfter: 1, Of: exceeds})
	for i := range phases {
		addRefused(&phases[i], refused)
	}
	return phases, err
}

// addRefused adds what the proxy refused, which the API server and its log never saw.
func addRefused(phase *report.Phase, refused map[string]int) {
	if phase.Requests == nil || len(refused) == 0 {
		return
	}
	if phase.Refused == nil {
		phase.Refused = map[string]int{}
	}
	for request, count := range refused {
		phase.Requests[request] += count
		phase.Refused[strconv.Itoa(http.StatusTooManyRequests)] += count
	}
}

func (b *bench) tellFault(ctx context.Context, fault testenv.Fault) ([]report.Phase, error) {
	began, before := time.Now(), len(b.world.proxy.Arrivals())
	c := b.flipping("release", b.names, corev1.ConditionTrue)
	load := c.load
	c.load = func(ctx context.Context) error {
		b.world.proxy.Set(fault)
		return load(ctx)
	}
	c.settled = func() error {
		b.world.proxy.Set(testenv.Fault{})
		return nil
	}
	phases, err := b.phases(ctx, c)
	b.world.proxy.Set(testenv.Fault{}) // also when the nodes did not get there
	work := func(a testenv.Arrival) bool { return a.IsWork() && !a.At.Before(began) }
	for i := range phases {
		phases[i].Extra["arrivals"] = float64(len(b.world.proxy.Arrivals()) - before)
		phases[i].Extra["most under way"] = float64(b.world.proxy.MostUnderWay(work))
	}
	return phases, errors.Join(err, b.again(ctx))
}
