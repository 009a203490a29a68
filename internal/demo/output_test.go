package demo_test

import (
	"bytes"
	"testing"

	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/scenario"
)

func TestTheTextOfAScenarioHasNoControlCharacters(t *testing.T) {
	for _, c := range []struct {
		step scenario.Step
		want string
	}{
		{scenario.Step{Say: "two\nlines\x1b[2J\a\n"}, "two lines[2J\n"},
		{scenario.Step{Delete: &scenario.Delete{Rule: "a\x1b[2J"}}, "  delete rule a[2J\n"},
	} {
		var out bytes.Buffer
		demo.PrintStep(&out, &c.step, "b\x1b[2J is held")
		if got, want := out.String(), c.want+"  ✓ b[2J is held\n  ✗ b[2J is held: no\n"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}
