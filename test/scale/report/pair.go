package report

import "slices"

// Turn says when a run was measured. Those of a trial with the same pair and try were measured one
// after the other, and are compared.
type Turn struct {
	// Pair counts from 1; 0: the file is from before, and the first run is of the first pair.
	Pair int `json:"pair,omitempty"`
	// Try is 1, and more where the pair was disturbed and measured again.
	Try int `json:"try,omitempty"`
	// Place is 1 for the subject that was measured first.
	Place int `json:"place,omitempty"`
	// Disturbed says that more than the limit was stolen in a phase of the run, whichever.
	Disturbed bool `json:"disturbed,omitempty"`
}

// At is the result of one run with its turn.
func (r Result) At(turn Turn) Result {
	turn.Disturbed = r.Disturbed()
	r.Phases = slices.Clone(r.Phases)
	for i := range r.Phases {
		attempt := r.Phases[i].asAttempt()
		attempt.Turn = turn
		r.Phases[i].Attempts = []Attempt{attempt}
	}
	return r
}

// Pairs is how many pairs of a trial have been measured, if only in part.
func (run *Run) Pairs(trial Result) int {
	most := 0
	for i := range run.Results {
		r := &run.Results[i]
		if r.Subject == Nobody || !r.sameTrial(&trial) {
			continue
		}
		pairs := max(r.Runs, 1)
		if len(r.Phases) > 0 && len(r.Phases[0].Attempts) > 0 {
			if last := r.Phases[0].Attempts[len(r.Phases[0].Attempts)-1]; last.Pair > 0 {
				pairs = last.Pair
			}
		}
		most = max(most, pairs)
	}
	return most
}

func (p *Phase) asAttempt() Attempt {
	return Attempt{Took: p.Took, Work: p.Work, Stolen: p.Stolen, CPU: p.CPU}
}

// written are the runs of a phase of which the file tells.
func (r *Result) written(p *Phase) []Attempt {
	if len(p.Attempts) == 0 && r.Runs < 2 {
		return []Attempt{p.asAttempt()}
	}
	return p.Attempts
}

// runs are all runs of a phase; none where not all of them are known: some alone would hide the
// others.
func (r *Result) runs(p *Phase) []Attempt {
	all := slices.Clone(r.written(p))
	if len(all) != max(r.Runs, 1) {
		return nil
	}
	for i := range all {
		if all[i].Pair == 0 {
			all[i].Pair, all[i].Try = i+1, 1
		}
	}
	return all
}

// pair is a run of a phase, and that of the floor which was measured before or after it: how fast a
// machine is changes from minute to minute.
type pair struct{ ours, floor Attempt }

// pairsOf are those of the phases of a result and of the floor. Where runs cannot be paired, the best
// of both stand for all.
func pairsOf(result, floor *Result, ours, floors *Phase) []pair {
	var all []pair
	if result.sameTrial(floor) {
		for _, a := range result.runs(ours) {
			for _, b := range floor.runs(floors) {
				if a.Pair == b.Pair && a.Try == b.Try {
					all = append(all, pair{a, b})
				}
			}
		}
	}
	if all == nil {
		return []pair{{ours.asAttempt(), floors.asAttempt()}}
	}
	return all
}
