package report

import (
	"fmt"
	"math"
	"time"
)

// elasticity is by how many percent a phase takes longer where the piece of work that tells how
// fast the machine is takes 1 % longer. The work is small and always the same, and what slows a
// machine down, a neighbour in its caches, say, slows an API server down more than that.
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

// fit is an elasticity that was found.
type fit struct {
	slope, deviation float64 // and its standard error
	runs             int     // of the floor
}

const (
	// fitDegrees are the least degrees of freedom from which a standard error means something.
	fitDegrees = 8
	// fitDeviation is the largest standard error with which an elasticity counts as known.
	fitDeviation = 0.2
)

// elasticity is that of the floor's flips: what is compared with the floor has no part in it.
func (run *Run) elasticity() elasticity {
	if f := run.fit(); f != nil {
		return elasticity(f.slope)
	}
	return proportional
}

// fit finds the elasticity by least squares: the logarithms of what runs of the same flip took,
// over those of the work, each less their mean. Nil: there are too few runs, or they differ in
// something else.
func (run *Run) fit() *fit {
	var sum sums
	for i := range run.Results {
		r := &run.Results[i]
		if r.Subject != Floor || r.Scenario != Flip || r.Problem != "" {
			continue
		}
		for j := range r.Phases {
			sum.add(r.runs(&r.Phases[j]))
		}
	}
	return sum.fit()
}

// sums are those of least squares, over several groups of runs.
type sums struct {
	xx, xy, yy   float64
	runs, groups int
}

// add adds runs of the same phase.
func (s *sums) add(attempts []Attempt) {
	var xs, ys []float64
	for _, a := range attempts {
		if !a.Disturbed && a.Work > 0 && a.had() > 0 {
			xs, ys = append(xs, math.Log(float64(a.Work))), append(ys, math.Log(float64(a.had())))
		}
	}
	if len(xs) < 2 {
		return
	}
	s.groups, s.runs = s.groups+1, s.runs+len(xs)
	midX, midY := mean(xs), mean(ys)
	for i := range xs {
		x, y := xs[i]-midX, ys[i]-midY
		s.xx, s.xy, s.yy = s.xx+x*x, s.xy+x*y, s.yy+y*y
	}
}

func (s *sums) fit() *fit {
	degrees := s.runs - s.groups - 1
	if degrees < fitDegrees || s.xx == 0 {
		return nil
	}
	f := &fit{slope: s.xy / s.xx, runs: s.runs}
	f.deviation = math.Sqrt(max(0, s.yy-f.slope*s.xy) / float64(degrees) / s.xx)
	if f.deviation > fitDeviation {
		return nil
	}
	return f
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// elasticityWords is what a page says of it; nothing where it is not known.
func (run *Run) elasticityWords() string {
	f := run.fit()
	if f == nil {
		return ""
	}
	return fmt.Sprintf("Where the piece of work that tells the speed of the machine takes 1 %% longer, a flip of the floor takes %s %% longer "+
		"(standard error %s, from %s phases of the floor): all speeds are to that power.", plain(f.slope, 2), plain(f.deviation, 2), number(f.runs))
}

// speed is how fast the machine was when the piece of work took so long, beside the fastest phase of
// the run.
func (run *Run) speed(work time.Duration) ratio {
	if work == 0 {
		return 0
	}
	best := work
	for i := range run.Results {
		for _, p := range run.Results[i].Phases {
			if p.Work > 0 && p.Work < best {
				best = p.Work
			}
		}
	}
	return run.elasticity().slower(best, work)
}

// even is a time as if the machine had been as fast as in the fastest phase of the run.
func (run *Run) even(d, work time.Duration) time.Duration {
	if speed := run.speed(work); speed > 0 {
		return time.Duration(float64(d) * float64(speed))
	}
	return d
}
