package probe

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"github.com/readygate/readygate/internal/core/podrule"
)

// maxLooks is how many looks at files may not have ended.
const maxLooks = 256

// looks are the looks at files that have not ended. A file system whose server is gone blocks every
// process that looks at it, so each look has its own goroutine: a caller waits for it until its context
// ends, and callers that ask the same wait for the same look.
type looks struct {
	group   singleflight.Group
	pending atomic.Int32
	// at is lookAt, but in tests.
	at func(root string, p podrule.Probe) podrule.Answer
}

// ask looks at a file.
func (l *looks) ask(ctx context.Context, root string, p podrule.Probe) podrule.Answer {
	const hangs = "the file system does not answer"
	look := l.group.DoChan(p.Path+"\x00"+p.Contains, func() (any, error) {
		defer l.pending.Add(-1)
		if l.pending.Add(1) > maxLooks {
			return no(hangs), nil
		}
		if l.at != nil {
			return l.at(root, p), nil
		}
		return lookAt(root, p), nil
	})
	select {
	case ended := <-look:
		return ended.Val.(podrule.Answer)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return no(givenUp)
		}
		return no(hangs)
	}
}
