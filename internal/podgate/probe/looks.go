package probe

import (
	"context"
	"errors"
	"sync"

	"github.com/readygate/readygate/internal/core/podrule"
)

// maxLooks is how many looks at files may not have ended.
const maxLooks = 256

// looks are the looks at files that have not ended. A file system whose server is gone does not let
// go of who looks at it, so each look is left to itself: who asks does not wait for it for ever, and
// who asks the same again waits for the same look.
type looks struct {
	mu      sync.Mutex
	pending map[podrule.Probe]*look
	// at is lookAt, but in tests.
	at func(root string, p podrule.Probe) podrule.Answer
}

type look struct {
	ended  chan struct{}
	answer podrule.Answer
}

// ask looks at a file.
func (l *looks) ask(ctx context.Context, root string, p podrule.Probe) podrule.Answer {
	const hangs = "the file system does not answer"
	begun := l.begin(root, p)
	if begun == nil {
		return no(hangs)
	}
	select {
	case <-begun.ended:
		return begun.answer
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return no(givenUp)
		}
		return no(hangs)
	}
}

// begin begins a look unless there is one; nil if there are too many.
func (l *looks) begin(root string, p podrule.Probe) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is := l.pending[p]; is != nil {
		return is
	}
	if len(l.pending) >= maxLooks {
		return nil
	}
	if l.pending == nil {
		l.pending = map[podrule.Probe]*look{}
	}
	at := l.at
	if at == nil {
		at = lookAt
	}
	begun := &look{ended: make(chan struct{})}
	l.pending[p] = begun
	go func() {
		begun.answer = at(root, p)
		l.mu.Lock()
		delete(l.pending, p)
		l.mu.Unlock()
		close(begun.ended)
	}()
	return begun
}
