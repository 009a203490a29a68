package demo_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/scenario"
)

func TestAComponentAnswersAsTheScenarioSets(t *testing.T) {
	e, err := demo.ServeEndpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, node string) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL(node, "net"), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	expect := func(node string, want int) {
		t.Helper()
		if got, err := ask(t.Context(), node); got != want || err != nil {
			t.Errorf("%s answers %d (%v), want %d", node, got, err, want)
		}
	}
	expect("a", http.StatusServiceUnavailable)
	e.SetHealth("a", "net", scenario.Up)
	expect("a", http.StatusOK)
	expect("b", http.StatusServiceUnavailable)
	e.SetHealth("a", "net", scenario.Down)
	expect("a", http.StatusServiceUnavailable)

	e.SetHealth("a", "net", scenario.Hangs)
	hanging := make(chan error)
	go func() {
		_, err := ask(t.Context(), "a")
		hanging <- err
	}()
	expect("b", http.StatusServiceUnavailable) // others do not wait for it
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-hanging; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a component that hangs has answered: %v", err)
	}
}
