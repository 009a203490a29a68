package probe

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"github.com/readygate/readygate/internal/core/podrule"
)

// maxPending is the maximum number of unfinished reads.
const maxPending = 256

// fileChecks tracks the unfinished checks of files. A file system whose server is gone blocks every
// process that reads it, so each check has its own goroutine: a caller waits for it until its context
// ends, and concurrent callers with the same probe share one check.
type fileChecks struct {
	group   singleflight.Group
	pending atomic.Int32
	// at replaces checkFile in tests.
	at func(root string, p podrule.Probe) podrule.Answer
}

// ask checks a file.
func (l *fileChecks) ask(ctx context.Context, root string, p podrule.Probe) podrule.Answer {
	const hangs = "the file system does not respond"
	done := l.group.DoChan(p.Path+"\x00"+p.Contains, func() (any, error) {
		defer l.pending.Add(-1)
		if l.pending.Add(1) > maxPending {
			return no(hangs), nil
		}
		if l.at != nil {
			return l.at(root, p), nil
		}
		return checkFile(root, p), nil
	})
	select {
	case result := <-done:
		return result.Val.(podrule.Answer)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return no(givenUp)
		}
		return no(hangs)
	}
}
