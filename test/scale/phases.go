package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/test/scale/report"
)

// pace has the rates and durations of the phases that do not run as fast as possible.
type pace struct {
	joins      float64       // nodes created per second
	readyAfter time.Duration // from the creation of a node until its condition is True
	steady     time.Duration // of heartbeats
	heartbeats float64       // per second, of all nodes together
}

// flip makes all nodes ready, then unready. From the second pair on it restarts the controller first, because a
// repeated action, such as a second event of a node, costs less than a first one.
func (w *world) flip(ctx context.Context, pair int, keep func(report.Result)) error {
	if pair > 1 && w.process != nil {
		w.stop()
		if err := errors.Join(w.start(), w.quiet(ctx)); err != nil {
			return err
		}
	}
	for _, c := range []change{w.setAll(report.Release, corev1.ConditionTrue), w.setAll(report.Hold, corev1.ConditionFalse)} {
		if err := w.measure(ctx, pair, c, keep); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) setAll(phase string, status corev1.ConditionStatus) change {
	load := func(ctx context.Context) error { return w.setConditions(ctx, w.names, status) }
	return change{phase: phase, load: load, nodes: w.names, held: status != corev1.ConditionTrue}
}

// restart stops the controller, makes a tenth of the nodes ready, and starts it again.
func (w *world) restart(ctx context.Context, keep func(report.Result)) error {
	w.stop()
	w.process = nil
	some := w.names[:max(1, len(w.names)/10)]
	if err := w.setConditions(ctx, some, corev1.ConditionTrue); err != nil {
		return err
	}
	return w.measure(ctx, 1, change{phase: report.Restart, load: func(context.Context) error { return w.start() }, nodes: some}, keep)
}

// steady sends heartbeats only.
func (w *world) steady(ctx context.Context, p pace, keep func(report.Result)) error {
	return w.measure(ctx, 1, change{phase: report.Steady, load: func(ctx context.Context) error {
		return paced(ctx, int(p.heartbeats*p.steady.Seconds()), p.heartbeats, func(ctx context.Context, i int) error {
			return w.heartbeat(ctx, w.names[i%len(w.names)])
		})
	}}, keep)
}

// joinNodes creates the nodes at a rate and makes each ready later. For the floor it creates them with the taints, as a
// kubelet with --register-with-taints does.
func (w *world) joinNodes(ctx context.Context, p pace, keep func(report.Result)) error {
	var taints []corev1.Taint
	if w.subject == report.Floor {
		for _, key := range w.recorder.taints {
			taints = append(taints, corev1.Taint{Key: key, Value: "pending", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	delay := int(p.joins * p.readyAfter.Seconds()) // in nodes
	return w.measure(ctx, 1, change{phase: report.Join, nodes: w.names, load: func(ctx context.Context) error {
		return paced(ctx, len(w.names)+delay, p.joins, func(ctx context.Context, i int) error {
			if i < len(w.names) {
				if err := w.register(ctx, i, taints); err != nil {
					return err
				}
			}
			if i < delay {
				return nil
			}
			return w.setCondition(ctx, w.names[i-delay], corev1.ConditionTrue)
		})
	}}, keep)
}
