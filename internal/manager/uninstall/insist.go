package uninstall

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// A step that failed is tried again after firstPause, then twice as long each time, to
	// lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = 8 * time.Second

	// refusals is how often a step may be refused before it is given up. An API server that has
	// just started refuses everything for a moment; after half a minute only a user can mend it.
	refusals = 8
)

// insist does a step until it succeeds, is refused for good or fought, or time is up. The error is that
// of the last try that had time to find out what is wrong.
func insist(ctx context.Context, step func(context.Context) error) error {
	var last error
	refused := 0
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := step(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(last, err)
		}
		last = err
		if isRefusal(err) {
			refused++
		}
		var fought *putBackError
		if refused == refusals || errors.As(err, &fought) || !sleep(ctx, pause) {
			return err
		}
		log.V(1).Info("Trying again", "reason", err.Error())
	}
}

// isRefusal says that the API server will answer the same until somebody changes a policy or a
// role.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// sleep waits, and says whether there is time left.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
