package liveread

import (
	"sync"
	"time"
)

// Shared shares the result of one read among all callers that called before its request was sent: a caller never gets a
// result that is older than its call. The zero value has no result. It is safe for concurrent use; callers that arrive
// during a read wait for its end.
type Shared[T any] struct {
	mu    sync.Mutex
	value T
	sent  time.Time
}

// Read returns a result whose request was sent after asked: the last result if it qualifies, otherwise a new one from
// read. An error of read is returned to its caller only.
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
