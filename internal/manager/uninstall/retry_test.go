package uninstall

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A failed step is retried until the context ends, and a rejected step maxRefusals times. The error is the cause, not
// the end of the context.
func TestRetry(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no"))
	for name, tc := range map[string]struct {
		step  func(ctx context.Context, try int) error
		tries int
		want  string
	}{
		"done at once":        {func(context.Context, int) error { return nil }, 1, ""},
		"done later":          {func(_ context.Context, try int) error { return map[bool]error{true: errors.New("busy")}[try < 3] }, 3, ""},
		"always rejected":     {func(context.Context, int) error { return forbidden }, maxRefusals, "forbidden"},
		"rejected, then done": {func(_ context.Context, try int) error { return map[bool]error{true: forbidden}[try < 3] }, 3, ""},
		"timeout": {func(ctx context.Context, try int) error {
			if try == 1 {
				return errors.New("the windmills are closed")
			}
			<-ctx.Done()
			return ctx.Err()
		}, 2, "the windmills are closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				tries := 0
				err := retry(ctx, func(ctx context.Context) error {
					tries++
					return tc.step(ctx, tries)
				})
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || tries != tc.tries {
					t.Errorf("got %v after %d tries, want %q after %d", err, tries, tc.want, tc.tries)
				}
			})
		})
	}
}
