package report

import (
	"fmt"
	"math"
	"strings"
)

// flips is what the page says of how flips compare with the floor: every pair, and how the speed of the
// machine counts. Nothing where none was measured beside the floor.
func (run *Run) flips() string {
	var all rows
	for _, t := range run.trials() {
		for _, result := range t.results {
			if t.scenario == Flip && result.Subject == Ours && result.Problem == "" && run.floor(result) != nil {
				all = append(all, run.read(result)...)
			}
		}
	}
	if all == nil {
		return ""
	}
	had := run.elasticity(Attempt.had)
	table := grid{append(all.sizes(), all.label("", func(r reading) string { return r.Name })), []column{
		all.label("each pair", func(r reading) string { return each(r.ratios(Attempt.had, had)) }),
		all.column("median", func(r reading) string { return r.timeRatio().String() }),
		all.column("at power 1", func(r reading) string { return median(r.ratios(Attempt.had, proportional)).String() }),
		all.column("as measured", func(r reading) string { return median(r.ratios(Attempt.had, 0)).String() }),
		all.column("CPU", func(r reading) string { return r.cpuRatio().String() }),
		all.column("CPU at power 1", func(r reading) string { return median(r.ratios(Attempt.used, proportional)).String() }),
	}}.markdown()
	return fmt.Sprintf("Flips, as multiples of the floor:\n\n%s\n%s", table, strings.Join([]string{run.elasticityWords(), all.evenWords()}, " "))
}

func each(ratios []ratio) string {
	var words []string
	for _, r := range ratios {
		words = append(words, strings.TrimSuffix(r.String(), "×"))
	}
	return strings.Join(words, " ")
}

// elasticityWords is how the speed counts.
func (run *Run) elasticityWords() string {
	took, used := run.fit(Attempt.had), run.fit(Attempt.used)
	words := func(f *fit) string {
		return fmt.Sprintf("%s %% (standard error %s, %s)", plain(f.slope, 2), plain(f.deviation, 2), counted(f.runs, "run"))
	}
	const why = "Where the piece of work that tells the speed of the machine takes 1 % longer, a flip of the floor "
	switch {
	case took != nil && used != nil:
		return why + "takes " + words(took) + " longer, and " + words(used) + " more CPU: speeds are to these powers."
	case took != nil:
		return why + "takes " + words(took) + " longer: for times the speed is to that power, and for CPU as it is."
	case used != nil:
		return why + "takes " + words(used) + " more CPU: for CPU the speed is to that power, and for times as it is."
	}
	return "How flips of the floor follow the speed of the machine is not known well enough from this run, so speeds are as they are (power 1)."
}

// evenWords is whether the machine was as fast for both in a pair: if one of them slowed the piece of
// work down by itself, it would be forgiven for that.
func (rs rows) evenWords() string {
	var logs []float64
	for _, r := range rs {
		for _, p := range calm(r.pairs) {
			if p.ours.Work > 0 && p.floor.Work > 0 {
				logs = append(logs, math.Log(float64(over(p.ours.Work, p.floor.Work))))
			}
		}
	}
	if len(logs) < 2 {
		return ""
	}
	var sum, squares float64
	for _, l := range logs {
		sum += l
	}
	middle := sum / float64(len(logs))
	for _, l := range logs {
		squares += (l - middle) * (l - middle)
	}
	deviation := math.Sqrt(squares / float64(len(logs)-1) / float64(len(logs)))
	return fmt.Sprintf("In the same pair that work took %s times as long beside Readygate as beside the floor (mean of %s; standard error %s).",
		plain(math.Exp(middle), 3), counted(len(logs), "phase"), plain(deviation, 3))
}
