package node_test

import (
	"slices"
	"testing"

	"github.com/readygate/readygate/internal/manager/node"
)

func TestFailures(t *testing.T) {
	var failures node.Failures
	var notified []string
	failures.OnChange(func(rule string) { notified = append(notified, rule) })
	failure := node.Failure{Reason: "Forbidden", Message: "no", Rules: []string{"a", "b"}}

	for i := range 3 {
		if again := failures.Record("n1", failure); again != i {
			t.Errorf("the same failure was recorded %d times before, want %d", again, i)
		}
	}
	if want := []string{"a", "b"}; !slices.Equal(notified, want) {
		t.Errorf("notified %v, want %v: a repeated failure is not notified", notified, want)
	}
	if of := failures.Of("a"); len(of) != 1 || of["n1"].Message != "no" {
		t.Errorf("failures of a: %v", of)
	}
	if of := failures.Of("c"); len(of) != 0 {
		t.Errorf("failures of c: %v", of)
	}

	other := failure
	other.Message = "no, at another time"
	if again := failures.Record("n1", other); again != 3 {
		t.Errorf("another message of the same reason was recorded %d times before, want 3", again)
	}
	other.Reason = "Invalid"
	if again := failures.Record("n1", other); again != 0 {
		t.Errorf("another reason was recorded %d times before, want 0", again)
	}
	if first, second := failures.Passing("n1"), failures.Passing("n1"); first != 1 || second != 2 {
		t.Errorf("passing failures in a row: %d, %d", first, second)
	}
	notified = nil
	failures.Clear("n1")
	failures.Clear("n1")
	if n := failures.Passing("n1"); n != 1 {
		t.Errorf("%d passing failures in a row after a success", n)
	}
	if want := []string{"a", "b"}; !slices.Equal(notified, want) || len(failures.Of("a")) != 0 {
		t.Errorf("notified %v, left %v", notified, failures.Of("a"))
	}
}
