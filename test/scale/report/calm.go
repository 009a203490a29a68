package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// stolenLimit is the share of the CPU time that other guests may have in a phase: more, and the run
	// is disturbed, and with it its pair. It was set before what is shown was measured, and after a
	// look at earlier runs. Times are compared without what was stolen, but a core that is taken away
	// makes the other wait too, and of that the share says nothing.
	stolenLimit = 0.15

	// Tries is how often a pair is measured at most.
	Tries = 2
)

// had is the time that was not stolen.
func (a Attempt) had() time.Duration {
	if a.Stolen == nil {
		return a.Took
	}
	return time.Duration(float64(a.Took) * (1 - *a.Stolen))
}

// Disturbed says whether too much was stolen in a phase of a run. Nothing else counts, least of all
// what the run took.
func (r *Result) Disturbed() bool {
	return slices.ContainsFunc(r.Phases, func(p Phase) bool { return p.disturbed() })
}

func (p *Phase) disturbed() bool { return p.Stolen != nil && Disturbs(*p.Stolen) }

// Disturbs says whether so large a share of the CPU time is too much.
func Disturbs(stolen float64) bool { return stolen > stolenLimit }

func (a Attempt) disturbed() bool { return a.Disturbed }

func (p pair) disturbed() bool { return p.ours.Disturbed || p.floor.Disturbed }

// calm are those that were not disturbed; all, if there is no other.
func calm[T interface{ disturbed() bool }](all []T) []T {
	undisturbed := slices.DeleteFunc(slices.Clone(all), func(one T) bool { return one.disturbed() })
	if len(undisturbed) == 0 {
		return all
	}
	return undisturbed
}

// pairsOf says how many pairs a trial has and which of them count; nothing where there are none, or
// nobody knows what was stolen.
func (run *Run) pairsOf(t *trial) string {
	at := slices.IndexFunc(t.results, func(r *Result) bool { return r.Subject != Floor && r.Problem == "" && len(r.Phases) > 0 })
	if at < 0 {
		return ""
	}
	all := run.read(t.results[at])[0].pairs
	disturbed, unknown := 0, 0
	for _, p := range all {
		switch {
		case p.disturbed():
			disturbed++
		case p.ours.Stolen == nil || p.floor.Stolen == nil:
			unknown++
		}
	}
	words := counted(len(all), "pair")
	switch {
	case unknown == len(all) || all[0].ours.Pair == 0: // or it is only the best of both
		return ""
	case disturbed == len(all):
		return words + ", all disturbed: ratios are of all"
	case disturbed == 0:
		words += ", none set aside"
	default:
		words += fmt.Sprintf(", %s set aside", number(disturbed))
	}
	if unknown > 0 {
		words += fmt.Sprintf("; of %s nobody knows what was stolen", number(unknown))
	}
	return words
}

// pairs is what the page says of them, trial by trial.
func (run *Run) pairs() string {
	var lines []string
	for _, t := range run.trials() {
		if words := run.pairsOf(t); words != "" {
			lines = append(lines, fmt.Sprintf("- %s, %s: %s", titleOf(t.scenario), t.size(), words))
		}
	}
	if lines == nil {
		return ""
	}
	return fmt.Sprintf("Ratios of time and CPU are of pairs: a run, and the floor's before or after it. A pair is disturbed if other guests of the host had more than %s %% of the CPU time "+
		"in a phase of one of them, whatever that took. It is measured again, up to %d times in all, and set aside unless there is no other.\n\n%s\n",
		plain(100*stolenLimit, 1), Tries, strings.Join(lines, "\n"))
}
