package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table writes what a run measured for a terminal, scenario by scenario and size by size.
// Columns that hold nothing are left out. What cannot be written is lost.
func Table(w io.Writer, run Run) {
	var b bytes.Buffer
	marked := false
	for _, t := range run.trials() {
		all := run.rowsOf(t)
		marked = marked || all.withLoad()
		fmt.Fprintf(&b, "%s\n", t.heading())
		for _, columns := range [][]column{all.pace(), all.work(), slices.Concat(all.extra(), all.server(), []column{all.speed()})} {
			if text := (grid{all.subjects(), columns}).text(); text != "" {
				fmt.Fprintf(&b, "\n%s", indent(text))
			}
		}
		if words := run.pairsOf(t); words != "" {
			fmt.Fprintf(&b, "\n  %s\n", words)
		}
		for _, problem := range t.problems() {
			fmt.Fprintf(&b, "\n  %s\n", problem)
		}
		b.WriteString("\n")
	}
	power := ""
	if f := run.fit(Attempt.had); f != nil {
		power = fmt.Sprintf(", to the power %s, by which the floor follows it", plain(f.slope, 2))
	}
	b.WriteString("floor: ratio to the floor, at equal speeds, and of times without what was stolen.\n" +
		"speed: of the machine, beside the fastest" + power + ".\n" +
		"into etcd: bytes less those of the load. left: requests after quiet.\n" +
		"allocated: by the API server until the last taint changed, for the load too.\n")
	if marked {
		b.WriteString("*: bytes of the load included, which was not measured alone.\n")
	}
	_, _ = w.Write(b.Bytes())
}

func (t *trial) heading() string {
	parts := []string{t.scenario, t.size()}
	if t.mode != "" {
		parts = append(parts, t.mode)
	}
	if t.writers > 0 {
		parts = append(parts, counted(t.writers, "writer"))
	}
	if runs := slices.MaxFunc(t.results, func(a, b *Result) int { return cmp.Compare(a.Runs, b.Runs) }).Runs; runs > 1 {
		parts = append(parts, "best of "+counted(runs, "run"))
	}
	return strings.Join(parts, ", ")
}

// problems are why subjects did not finish.
func (t *trial) problems() []string {
	var all []string
	for _, result := range t.results {
		if result.Problem != "" {
			all = append(all, fmt.Sprintf("%s did not finish: %s", result.Subject, result.Problem))
		}
	}
	return all
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
