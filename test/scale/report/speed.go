package report

import (
	"math"
	"time"
)

// elasticity is by how many percent a phase takes longer where the piece of work that tells how
// fast the machine is takes 1 % longer. The work is small and always the same: what slows a machine
// down, a neighbour in its caches, say, need not slow down an API server as much as that.
type elasticity float64

// proportional is the elasticity of a run that is too short to tell it.
const proportional elasticity = 1

// slower is how much slower the machine was when the same work took a than when it took b; 1 where
// nobody knows.
func (e elasticity) slower(a, b time.Duration) ratio {
	if a == 0 || b == 0 {
		return 1
	}
	return ratio(math.Pow(float64(over(a, b)), float64(e)))
}

// amount is what a run needed of something.
type amount func(Attempt) time.Duration

// used is the CPU time of the subject.
func (a Attempt) used() time.Duration { return a.CPU }

// fit is an elasticity that was found.
type fit struct {
	slope, deviation float64 // and its standard error
	runs             int     // of the floor
}

const (
	// fitRuns is how many runs there must be, besides the first of each flip, for a standard error to
	// mean something.
	fitRuns = 8
	// fitDeviation is the largest standard error with which an elasticity counts as known.
	fitDeviation = 0.2
)

// elasticity is that of the floor's flips: what is compared with the floor has no part in it.
func (run *Run) elasticity(of amount) elasticity {
	if f := run.fit(of); f != nil {
		return elasticity(f.slope)
	}
	return proportional
}

// fit finds the elasticity by least squares: the logarithms of what runs of the same flip needed,
// over those of the work, each less their mean. Nil: there are too few runs, or they differ in
// something else.
func (run *Run) fit(of amount) *fit {
	var sample sample
	for i := range run.Results {
		r := &run.Results[i]
		if r.Subject != Floor || r.Scenario != Flip || r.Problem != "" {
			continue
		}
		for j := range r.Phases {
			sample.add(i, r.runs(&r.Phases[j]), of)
		}
	}
	return sample.fit()
}

// sample are points of several flips.
type sample []point

// point is a phase of a run, less the mean of all runs of it.
type point struct {
	of   origin
	x, y float64 // logarithms of the work, and of what it needed
}

// origin is the run of a point. Its phases are measured one after the other, and have more in common
// than the machine's speed.
type origin struct{ flip, pair, try int }

// add adds runs of the same phase of a flip.
func (s *sample) add(flip int, attempts []Attempt, of amount) {
	var points sample
	var x, y float64
	for _, a := range attempts {
		if !a.Disturbed && a.Work > 0 && of(a) > 0 {
			p := point{origin{flip, a.Pair, a.Try}, math.Log(float64(a.Work)), math.Log(float64(of(a)))}
			points, x, y = append(points, p), x+p.x, y+p.y
		}
	}
	for _, p := range points {
		p.x, p.y = p.x-x/float64(len(points)), p.y-y/float64(len(points))
		*s = append(*s, p)
	}
}

// fit has the standard error of runs, not of phases.
func (s sample) fit() *fit {
	var xx, xy float64
	for _, p := range s {
		xx, xy = xx+p.x*p.x, xy+p.x*p.y
	}
	if xx == 0 {
		return nil
	}
	f := &fit{slope: xy / xx}
	misses, flips := map[origin]float64{}, map[int]bool{}
	for _, p := range s {
		misses[p.of] += p.x * (p.y - f.slope*p.x)
		flips[p.of.flip] = true
	}
	f.runs = len(misses)
	free := f.runs - len(flips)
	if free < fitRuns {
		return nil
	}
	var squares float64
	for _, miss := range misses {
		squares += miss * miss
	}
	f.deviation = math.Sqrt(squares*float64(f.runs)/float64(free-1)) / xx
	if f.deviation > fitDeviation {
		return nil
	}
	return f
}

// fastest is the shortest time of the piece of work.
func (run *Run) fastest() time.Duration {
	var best time.Duration
	see := func(work time.Duration) {
		if work > 0 && (best == 0 || work < best) {
			best = work
		}
	}
	for i := range run.Results {
		for _, p := range run.Results[i].Phases {
			see(p.Work)
			for _, a := range p.Attempts {
				see(a.Work)
			}
		}
	}
	return best
}

// speed is how fast the machine was when the piece of work took so long, beside the fastest run of
// a phase.
func (run *Run) speed(work time.Duration) ratio {
	if work == 0 {
		return 0
	}
	return run.elasticity(Attempt.had).slower(run.fastest(), work)
}

// even is what a run needed as if the machine had been as fast as in the fastest.
func (run *Run) even(a Attempt, of amount) time.Duration {
	return time.Duration(float64(of(a)) * float64(run.elasticity(of).slower(run.fastest(), a.Work)))
}
