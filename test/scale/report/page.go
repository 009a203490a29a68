package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Page is docs/performance.md: what was measured, whether budgets are met, and all numbers. The
// notes are texts by hand in Markdown: "memory" explains the bytes of a node, "limits" where the
// machine stops, "method" how it is measured. Each may be missing.
func Page(run Run, notes map[string]string) []byte {
	p := &page{}
	p.say("<!-- Generated from performance.json by make generate. Do not edit. -->\n# Performance\n")
	p.intro(&run)
	p.budgets(&run)
	p.say("## Growth\n\n![Time and CPU over the number of nodes](%s)\n", GrowthFile)
	p.say("## Beside the floor\n\n![What each scenario costs, as multiples of the floor](%s)\n", RatiosFile)
	p.block(run.pairs())
	p.block(run.flips())
	p.scenarios(&run)
	p.memory(&run, notes["memory"])
	p.section("Where it stops", notes["limits"])
	p.section("How it is measured", notes["method"])
	return append(bytes.TrimRight(p.text.Bytes(), "\n"), '\n')
}

// page is Markdown in the making.
type page struct{ text bytes.Buffer }

// say adds a paragraph, or several.
func (p *page) say(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// block adds a text as it is, if there is any.
func (p *page) block(text string) {
	if text = strings.TrimSpace(text); text != "" {
		p.say("%s\n", text)
	}
}

// section adds one with a heading, if there is a text for it.
func (p *page) section(title, text string) {
	if strings.TrimSpace(text) != "" {
		p.say("## %s\n", title)
		p.block(text)
	}
}

func (p *page) intro(run *Run) {
	p.say("The scale benchmark runs a real kube-apiserver and etcd with realistic nodes, changes what rules look at, and measures what the controller does " +
		"about it. The *floor* is the least that any controller must do: one watch, one PATCH a node, no status, no events. It is measured in the same run, " +
		"so ratios to it depend little on the machine; seconds do. A machine that others share is not always as fast, so how fast it was is measured along with every phase (*speed*, " +
		"beside the fastest), and ratios of time and CPU are of equal speeds, those of time without what other guests of the host took. What was run several times (*runs*) is shown with the faster run of each phase, and its " +
		"ratios are the median of runs beside the floor's run next to them, where all are known.\n")
	var where []string
	if m := run.Machine; m.CPU != "" {
		where = append(where, m.CPU)
	}
	if run.Machine.Cores > 0 {
		where = append(where, counted(run.Machine.Cores, "core"))
	}
	if run.Machine.Memory > 0 {
		where = append(where, size(run.Machine.Memory)+" of memory")
	}
	for _, text := range []string{run.Machine.System, run.Machine.Go} {
		if text != "" {
			where = append(where, text)
		}
	}
	version := "Readygate"
	if run.Version != "" {
		version = "`" + run.Version + "`"
	}
	p.say("%s was measured on %s, on a machine with %s:\n", version, run.Date.UTC().Format("2 January 2006"), strings.Join(where, ", "))
	p.say("```sh\n%s\n```\n", run.Command)
}

func (p *page) budgets(run *Run) {
	table, summary := budgetTable(run)
	p.say("## Budgets\n\n%s\n", summary)
	for _, text := range run.unfinishedOurs() {
		p.say("**Not finished**: %s.\n", text)
	}
	p.say("%s", table)
	p.say("The worst of all scenarios with so many nodes counts, time aside, which is that of flips. *Work* is CPU, requests and bytes, each for itself.\n")
}

func (p *page) scenarios(run *Run) {
	p.say("## Scenarios\n")
	p.say("*Load* is how long the changes themselves took to write, *took* the time from the first of them until the last taint had changed, and p50 to max " +
		"the time from a change of a condition to that of its node's taint, as an independent watch saw both. CPU and *peak* memory are those of the controller. " +
		"*Nodes written*, *status* (of rules), *events* and *others* are its requests, without leases; *into etcd* are its own bytes: all, less those of the load " +
		"alone; *allocated* is what the API server allocated until the last taint had changed, for the load too; *left* are requests after it was quiet. *Floor* is the ratio of the number before it to that of the floor, or of the " +
		"floor with fewer rules, where it was not measured with as many.\n")
	trials := run.trials()
	for i := 0; i < len(trials); {
		from := i
		for i < len(trials) && trials[i].scenario == trials[from].scenario {
			i++
		}
		p.scenario(run, trials[from:i])
	}
}

// scenario has the trials of one scenario.
func (p *page) scenario(run *Run, trials []*trial) {
	p.say("### %s\n", titleOf(trials[0].scenario))
	p.block(stories[trials[0].scenario].text)
	var all rows
	for _, t := range trials {
		all = append(all, run.rowsOf(t)...)
	}
	labels := append(all.sizes(), all.subjects()...)
	p.block(grid{labels, append(all.pace(), all.speed(), all.runs())}.markdown())
	p.block(grid{labels, slices.Concat(all.work(), all.server(), all.extra())}.markdown())
	if all.withLoad() {
		p.say("*: the bytes of the load are among them; it was not measured alone.\n")
	}
	for _, t := range trials {
		for _, problem := range t.problems() {
			p.say("With %s, %s.\n", t.size(), strings.Join(strings.Fields(problem), " "))
		}
	}
}

func (p *page) memory(run *Run, note string) {
	table, words := memory(run)
	p.say("## Where the memory goes\n\n%s\n", words)
	p.block(table)
	p.block(note)
}
