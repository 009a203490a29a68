package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/test/scale/report"
)

// tellJoin lets nodes join at a rate, held from the first moment on, and become ready some
// time later. It has a world of its own. Only Readygate holds nodes at birth; for others the
// kubelet's flag --register-with-taints does.
func tellJoin(ctx context.Context, b *bench, p pace) ([]report.Phase, error) {
	var taints []corev1.Taint
	if b.subject.name != report.Ours {
		for _, key := range b.world.witness.taints {
			taints = append(taints, corev1.Taint{Key: key, Value: "pending", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	load := func(ctx context.Context) error { return b.join(ctx, p, taints) }
	phases, err := b.phases(ctx, change{name: "join", nodes: b.names, load: load})
	for i := range phases {
		phases[i].Extra["born without the taint"] = float64(b.world.witness.bare())
		if b.subject.name == report.Ours {
			phases[i].Extra["births"] = float64(len(b.names)) // it tells of them
		}
	}
	return phases, err
}

// join creates the nodes with these taints, and makes each ready when it is there and its time
// has come.
func (b *bench) join(ctx context.Context, p pace, taints []corev1.Taint) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	there := make([]chan struct{}, len(b.names))
	for i := range there {
		there[i] = make(chan struct{})
	}
	ready := make(chan error, 1)
	go func() {
		if err := sleepUntil(ctx, time.Now().Add(p.readyIn)); err != nil {
			ready <- err
			return
		}
		ready <- paced(ctx, len(b.names), b.world.size.Writers, p.joins, func(ctx context.Context, i int) error {
			select {
			case <-there[i]:
				return b.world.report(ctx, b.names[i], corev1.ConditionTrue)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	err := paced(ctx, len(b.names), b.world.size.Writers, p.joins, func(ctx context.Context, i int) error {
		if err := b.world.register(ctx, i, taints); err != nil {
			return err
		}
		close(there[i])
		return nil
	})
	if err != nil {
		cancel() // nodes that are not there are not waited for
	}
	return errors.Join(err, <-ready)
}
