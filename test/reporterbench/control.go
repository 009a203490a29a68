package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testenv"
)

// controlPeriod is how often the control writes.
const controlPeriod = 250 * time.Millisecond

// controls tells the nodes of controls apart.
var controls atomic.Int64

// control measures the API server and the witness alone, while a subject is measured: how
// long a write of our own takes until it is seen. A lag that shows here too is the machine's,
// not the subject's. The function that it returns ends it and gives what it saw.
func (l *lab) control(ctx context.Context) (func() testenv.Distribution, error) {
	node := "control-" + strconv.FormatInt(controls.Add(1), 10)
	if _, err := l.newNode(ctx, node); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan testenv.Distribution)
	go func() {
		var seen testenv.Distribution
		for i := 0; ctx.Err() == nil; i++ {
			began := time.Now()
			status := corev1.ConditionStatus(strconv.Itoa(i)) // any text will do, and each is seen once
			if l.report(ctx, node, status) != nil {
				continue
			}
			at, err := l.witness.await(ctx, sight{node, lagType, status})
			if err != nil {
				break
			}
			seen = append(seen, at.Sub(began))
			_ = sleep(ctx, controlPeriod) // the loop looks at the context
		}
		done <- seen
	}()
	return func() testenv.Distribution {
		stop()
		return <-done
	}, nil
}
