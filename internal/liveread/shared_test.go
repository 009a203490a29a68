package liveread_test

import (
	"errors"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/liveread"
)

// Callers that asked before the request was sent share its answer. A later caller reads again, and a
// failure is not shared.
func TestCallersBeforeTheRequestShareOneRead(t *testing.T) {
	var answer liveread.Shared[int]
	now, reads := time.Unix(1e9, 0), 0
	clock := func() time.Time { return now }
	read := func() (int, error) {
		reads++
		return reads, nil
	}
	asked := now
	now = now.Add(time.Second)
	for range 3 {
		if got, err := answer.Read(asked, clock, read); err != nil || got != 1 {
			t.Fatalf("asked before the request was sent: got %d, %v", got, err)
		}
	}
	if got, err := answer.Read(now, clock, read); err != nil || got != 2 {
		t.Errorf("asked when the request was sent: got %d, %v, want a new read", got, err)
	}
	asked = now
	now = now.Add(time.Minute)
	failed := errors.New("no")
	if _, err := answer.Read(asked, clock, func() (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("a failed read returned %v", err)
	}
	if got, err := answer.Read(asked, clock, read); err != nil || got != 3 {
		t.Errorf("after a failed read: got %d, %v, want a new read", got, err)
	}
}
