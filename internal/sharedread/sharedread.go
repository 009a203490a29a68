// Package sharedread shares one read past a cache among all callers that asked before its request was sent. It
// never returns a result that is older than the call.
package sharedread

import (
	"sync"
	"time"
)

// Answer is the last answer to one question. The zero value holds none. It is safe for concurrent
// use; callers that arrive during a read wait for it.
type Answer[T any] struct {
	mu    sync.Mutex
	value T
	sent  time.Time
}

// Read returns an answer whose request was sent after asked: the last one if it qualifies, else a
// new one from read. A failed read is returned to its caller only.
func (a *Answer[T]) Read(asked time.Time, now func() time.Time, read func() (T, error)) (T, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sent.After(asked) {
		return a.value, nil
	}
	sent := now()
	value, err := read()
	if err == nil {
		a.value, a.sent = value, sent
	}
	return value, err
}
