package report

import (
	"fmt"
	"strings"
)

// Page renders docs/explanation/performance.md. The notes are Markdown that describes the method.
func Page(run Run, notes string) []byte {
	var b strings.Builder
	b.WriteString("<!-- Generated from performance.json by make generate. Do not edit. -->\n# Performance\n\n")
	m := run.Machine
	fmt.Fprintf(&b, "`%s`, measured on %s with %s, %s, %.1f GiB of memory, %s, %s:\n\n```sh\n%s\n```\n\n", run.Version, run.Date.UTC().Format("2 January 2006"),
		m.CPU, counted(m.Cores, "core"), float64(m.Memory)/(1<<30), m.System, m.Go, run.Command)
	if run.Note != "" {
		fmt.Fprintf(&b, "%s\n\n", run.Note)
	}
	b.WriteString(Tables(run))
	b.WriteString("\n## Method\n\n" + strings.TrimSpace(notes) + "\n")
	return []byte(b.String())
}

// Tables renders the budgets and the numbers of a run.
func Tables(run Run) string {
	text := "## Budgets\n\n" + run.budgetTable()
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
