package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/testenv"
)

// slowest is the longest interval of pollers.
const slowest = 30 * time.Second

// pollers measures reporters that look at a fixed interval, whatever they found last. They
// are goroutines: what a process costs does not matter beside their interval.
func (l *lab) pollers(ctx context.Context, t *table, count int) error {
	intervals := []time.Duration{slowest, guideInterval}
	say("lag of %d pollers at each of %v, all at the same time", count, intervals)
	var (
		mu      sync.Mutex
		all     = map[time.Duration]testenv.Distribution{}
		failure error
		running sync.WaitGroup
	)
	for _, interval := range intervals {
		for i := range count {
			node := fmt.Sprintf("poller-%v-%d", interval, i)
			running.Go(func() {
				lag, err := l.poll(ctx, node, interval)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failure = fmt.Errorf("a poller at %v: %w", interval, err)
					return
				}
				all[interval] = append(all[interval], lag)
			})
		}
	}
	running.Wait()
	for _, interval := range intervals {
		row := append([]string{fmt.Sprintf("a poller at a fixed %v", interval)}, quantiles(all[interval])...)
		t.row(append(row, "", "", "", fmt.Sprintf("%d of %d", len(all[interval]), count))...)
	}
	return failure
}

// poll runs one poller until its condition is True. Its phase is random, to the component and
// to the other pollers.
func (l *lab) poll(ctx context.Context, node string, interval time.Duration) (time.Duration, error) {
	if _, err := l.newNode(ctx, node); err != nil {
		return 0, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, patience, errors.New("not in time"))
	defer stop()
	ready := time.After(rand.N(interval))
	look := time.NewTicker(interval)
	defer look.Stop()
	var healed time.Time
	for status := l.look(ctx, node); ; {
		if err := l.report(ctx, node, status); err != nil {
			return 0, err
		}
		if status == corev1.ConditionTrue {
			written, err := l.witness.await(ctx, sight{node, lagType, status})
			return written.Sub(healed), err
		}
		for looked := false; !looked; {
			select {
			case <-ready:
				healed = l.endpoints.heal(node)
			case <-look.C:
				status, looked = l.look(ctx, node), true
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
	}
}

// look asks the endpoint.
func (l *lab) look(ctx context.Context, node string) corev1.ConditionStatus {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.endpoints.url(node), nil)
	if err != nil {
		return corev1.ConditionFalse
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return corev1.ConditionFalse
	}
	_ = response.Body.Close() // the code is enough
	if response.StatusCode != http.StatusOK {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

// report writes the condition.
func (l *lab) report(ctx context.Context, node string, status corev1.ConditionStatus) error {
	now := metav1.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Polled","message":"","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, lagType, status, now, now)
	_, err := l.api.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}
