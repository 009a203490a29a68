package liveread

import (
	"sync"
	"time"
)

// Shared shares the result of one read among all callers that asked before its request was sent: a caller never
// gets a result that is older than its call. The zero value holds no result. It is safe for concurrent use;
// callers that arrive during a read wait for it.
type Shared[T any] struct {
	mu    sync.Mutex
	value T
	sent  time.Time
}

// Read returns a result whose request was sent after asked: the last one if it qualifies, else a
// new one from read. A failed read is returned to its caller only.
func (s *Shared[T]) Read(asked time.Time, now func() time.Time, read func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent.After(asked) {
		return s.value, nil
	}
	sent := now()
	value, err := read()
	if err == nil {
		s.value, s.sent = value, sent
	}
	return value, err
}
