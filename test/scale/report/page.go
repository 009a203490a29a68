package report

import (
	"fmt"
	"strings"
)

// Page renders docs/explanation/performance.md. The notes are Markdown that describes the method.
func Page(run Run, notes string) []byte {
	var b strings.Builder
	b.WriteString("<!-- Generated from performance.json by make generate. Do not edit. -->\n# Performance\n\n" +
		"How much does the manager cost, compared with the least that any controller must do?\n\n" +
		"The *floor* is a minimal controller in the same run: one watch, one PATCH per node, no status, no events. Most budgets are ratios to it.\n\n")
	fmt.Fprintf(&b, "%s\n%s\n", run.outcome(), run.budgetTable())
	m := run.Machine
	fmt.Fprintf(&b, "This run: `%s`, measured on %s with %s, %s, %.1f GiB of memory, %s, %s.\n\n", run.Version, run.Date.UTC().Format("2 January 2006"),
		m.CPU, counted(m.Cores, "core"), float64(m.Memory)/(1<<30), m.System, m.Go)
	if run.Note != "" {
		fmt.Fprintf(&b, "%s\n\n", run.Note)
	}
	fmt.Fprintf(&b, "```sh\n%s\n```\n", run.Command)
	fmt.Fprintf(&b, "\n<details><summary>All numbers</summary>\n\n%s\n</details>\n", strings.TrimPrefix(run.phases(), "\n"))
	b.WriteString("\n<details><summary>Method</summary>\n\n" + strings.TrimSpace(notes) + "\n\n</details>\n")
	return []byte(b.String())
}

// Tables renders the budgets and the numbers of a run.
func Tables(run Run) string { return "## Budgets\n\n" + run.budgetTable() + run.phases() }

// phases renders the numbers of every phase.
func (run *Run) phases() string {
	var text string
	if t := run.flips(); len(t.rows) > 0 {
		text += "\n## All nodes flip\n\n" + t.markdown()
	}
	if t := run.others(); len(t.rows) > 0 {
		text += "\n## Other phases\n\n" + t.markdown()
	}
	return text
}

// flips compares each pair with the floor.
func (run *Run) flips() table {
	t := table{header: []string{"nodes", "rules", "phase", "time ÷ floor, per pair", "median", "p99", "p99 of the floor", "p99 ÷ floor", "CPU ÷ floor", "bytes into etcd ÷ floor", "allocated ÷ floor"}}
	for _, g := range run.groups() {
		if !g.flip() {
			continue
		}
		var each []string
		for _, ratio := range g.timeRatios() {
			each = append(each, strings.TrimSuffix(times(ratio), "×"))
		}
		t.rows = append(t.rows, []string{
			number(g.nodes), number(g.rules), g.phase, strings.Join(each, " "), unknownIfZero(median(g.timeRatios()), times),
			unknownIfZero(medianOf(g.ours, p99), span), unknownIfZero(medianOf(g.floor, p99), span), unknownIfZero(g.ratio(p99), times),
			unknownIfZero(median(g.ratios(cpu)), times), unknownIfZero(g.bytesRatio(), times), unknownIfZero(g.ratio(allocated), times),
		})
	}
	return t
}

// others is the table of the phases whose time depends on the load.
func (run *Run) others() table {
	t := table{header: []string{"nodes", "rules", "phase", "controller", "time", "p99", "CPU", "peak memory", "node PATCHes", "status writes", "event writes", "other requests", "left"}}
	for _, g := range run.groups() {
		if g.flip() {
			continue
		}
		for _, results := range [][]*Result{g.ours, g.floor} {
			for _, r := range results {
				sent := tallyOf(r.Requests)
				t.rows = append(t.rows, []string{
					number(g.nodes), number(g.rules), g.phase, r.Subject, span(took(r)), unknownIfZero(p99(r), span), span(cpu(r)), size(peak(r)),
					number(sent.nodes), number(sent.status), number(sent.events), number(sent.others), number(r.left()),
				})
			}
		}
	}
	return t
}
