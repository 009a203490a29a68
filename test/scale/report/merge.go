package report

import "slices"

// Add puts a result to the others of the run. Of several runs of one trial the faster of each
// phase is kept, for as fast as the machine was, as what else it does only adds; and the most of
// memory and status. A run that was not finished does not take the place of one that was.
func (run *Run) Add(r Result) {
	r.Runs = max(r.Runs, 1)
	at := slices.IndexFunc(run.Results, func(other Result) bool { return other.repeats(&r) })
	if at < 0 {
		run.Results = append(run.Results, r)
		return
	}
	run.Results[at].merge(r)
}

// repeats says whether two results are of the same trial and subject, and so can be merged.
func (r *Result) repeats(o *Result) bool {
	same := r.Scenario == o.Scenario && r.Subject == o.Subject && r.Nodes == o.Nodes && r.Rules == o.Rules && r.Mode == o.Mode && r.Writers == o.Writers
	named := slices.EqualFunc(r.Phases, o.Phases, func(a, b Phase) bool { return a.Name == b.Name })
	return same && (named || r.Problem != "" || o.Problem != "")
}

func (r *Result) merge(o Result) {
	before := *r
	switch {
	case o.Problem != "": // what was finished stays, and so does the first problem
	case r.Problem != "":
		*r = o
	default:
		r.Phases = slices.Clone(r.Phases)
		for i, phase := range o.Phases {
			attempts := slices.Concat(r.attempts(i), o.attempts(i))
			if phase.faster(&r.Phases[i]) {
				r.Phases[i] = phase
			}
			r.Phases[i].Attempts = attempts
		}
		r.Runs = max(r.Runs, 1) + o.Runs
	}
	r.Peak, r.Settled = max(before.Peak, o.Peak), max(before.Settled, o.Settled)
	r.StatusBytes = max(before.StatusBytes, o.StatusBytes)
	larger := before
	if o.Heap > before.Heap {
		larger = o
	}
	r.Heap, r.HeapEmpty = larger.Heap, larger.HeapEmpty // of one run: their difference counts
}

// attempts are the runs of a phase; none where not all of them are known.
func (r *Result) attempts(i int) []Attempt {
	p := &r.Phases[i]
	if r.Runs <= 1 && len(p.Attempts) == 0 {
		return []Attempt{p.asAttempt()}
	}
	return p.Attempts
}

// faster says whether a phase took less than another, as fast as the machine was.
func (p *Phase) faster(other *Phase) bool {
	return float64(p.Took) < float64(other.Took)*float64(slower(p, other))
}
