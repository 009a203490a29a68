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

// What fails is tried again until time is up; what is refused, until it is clear that it stays
// so. The answer is the reason, not that time was up.
func TestRetry(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no"))
	for name, tc := range map[string]struct {
		step  func(ctx context.Context, try int) error
		tries int
		want  string
	}{
		"done at once":       {func(context.Context, int) error { return nil }, 1, ""},
		"done later":         {func(_ context.Context, try int) error { return map[bool]error{true: errors.New("busy")}[try < 3] }, 3, ""},
		"refused for good":   {func(context.Context, int) error { return forbidden }, maxRefusals, "forbidden"},
		"refused, then done": {func(_ context.Context, try int) error { return map[bool]error{true: forbidden}[try < 3] }, 3, ""},
		"time is up": {func(ctx context.Context, try int) error {
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
