package demo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/readygate/readygate/internal/demo"
)

func TestAProgramThatEndsByItselfEndsTheSession(t *testing.T) {
	running, wait := demo.RunProgram(t.Context(), "the manager", func(context.Context) error { return errors.New("no lease") })
	<-running.Done()
	if err := wait(); err == nil || err.Error() != "the manager has ended: no lease" {
		t.Errorf("the session ended with %v", err)
	}
}

func TestAProgramThatEndsWithTheSessionIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, wait := demo.RunProgram(ctx, "the manager", func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cancel()
	if err := wait(); err != nil {
		t.Errorf("the session ended with %v", err)
	}
}
