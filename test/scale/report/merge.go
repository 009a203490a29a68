package report

import (
	"fmt"
	"slices"
	"strings"
)

// Add puts a result to the others of the run. Of several runs of one trial the faster of each
// phase is kept, for as fast as the machine was, as what else it does only adds, and one that was
// disturbed only where there is no other; and the most of memory and status. A run that was not
// finished does not take the place of one that was.
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
	named := slices.EqualFunc(r.Phases, o.Phases, func(a, b Phase) bool { return a.Name == b.Name })
	return r.Subject == o.Subject && r.sameTrial(o) && (named || r.Problem != "" || o.Problem != "")
}

func (r *Result) sameTrial(o *Result) bool {
	return r.Scenario == o.Scenario && r.Nodes == o.Nodes && r.Rules == o.Rules && r.Mode == o.Mode && r.Writers == o.Writers
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
			attempts := slices.Concat(r.written(&r.Phases[i]), o.written(&phase))
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

// After is a run that is added to one before. Both must be of machines of the same kind: seconds and
// speeds of others cannot be compared.
func (run Run) After(before Run) (Run, error) {
	if then, now := before.Machine, run.Machine; then.CPU != now.CPU || then.Cores != now.Cores {
		return run, fmt.Errorf("was measured on %s (%s), and this machine is %s (%s): write to another file", then.CPU, counted(then.Cores, "core"), now.CPU, counted(now.Cores, "core"))
	}
	run.Results, run.Command = before.Results, before.Command+"\n"+run.Command
	run.Version = bothVersions(before.Version, run.Version)
	return run, nil
}

// bothVersions names the builds that were measured one after the other, each once.
func bothVersions(before, now string) string {
	switch {
	case before == "":
		return now
	case slices.Contains(strings.Split(before, ", "), now):
		return before
	default:
		return before + ", " + now
	}
}

// faster says whether a phase took less than another, as fast as the machine was and as much as it
// had of it. Of one that was disturbed nobody knows, and how much the speed matters is not known
// either while runs are added.
func (p *Phase) faster(other *Phase) bool {
	if disturbed := p.disturbed(); disturbed != other.disturbed() {
		return !disturbed
	}
	return float64(p.asAttempt().had()) < float64(other.asAttempt().had())*float64(proportional.slower(p.Work, other.Work))
}
