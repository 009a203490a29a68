package report

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// reading is one phase of a subject, beside what it is compared with.
type reading struct {
	*Phase
	run    *Run
	result *Result
	floor  *Phase // the same phase of the floor; nil: not measured
	pairs  []pair // of the runs of both
	nobody *Phase // and of the load alone
	speed  ratio  // of the machine, beside the fastest; 0: not known
}

// read finds what the phases of a result are compared with.
func (run *Run) read(result *Result) []reading {
	floor, nobody := run.floor(result), run.load(result)
	var all []reading
	for i := range result.Phases {
		phase := &result.Phases[i]
		r := reading{Phase: phase, run: run, result: result, speed: run.speed(phase.Work)}
		if floor != nil {
			r.floor = floor.phase(phase.Name)
		}
		if r.floor != nil {
			r.pairs = pairsOf(result, floor, phase, r.floor)
		}
		if nobody != nil {
			r.nobody = nobody.phase(phase.Name)
		}
		if r.nobody == nil && slices.Contains(without, result.Scenario) {
			r.nobody = &Phase{Name: phase.Name}
		}
		all = append(all, r)
	}
	return all
}

// without are the scenarios in which the load writes no node: rules come and go, or the
// controller does.
var without = []string{Create, Delete, Restart}

// floor is what the floor did under the same load. It knows no rules, so those that select no
// node do not matter to it.
func (run *Run) floor(result *Result) *Result {
	floor := run.beside(result, Floor)
	if floor == nil && result.Scenario == Many {
		floor = run.beside(result.asFlip(), Floor)
	}
	return floor
}

// load is what the load of a result costs alone. That of some scenarios is the load of a flip.
func (run *Run) load(result *Result) *Result {
	alone := run.beside(result, Nobody)
	if alone == nil && slices.Contains([]string{Many, Busy, Slow}, result.Scenario) {
		alone = run.beside(result.asFlip(), Nobody)
	}
	return alone
}

// asFlip is the flip that has the load of a result. Of many rules only one selects nodes.
func (r *Result) asFlip() *Result {
	flip := *r
	if r.Scenario == Many {
		flip.Rules = 1
	}
	flip.Scenario = Flip
	return &flip
}

// beside is the finished result of a subject under the same load. Where the subject was not
// measured with as many rules, that with fewer is taken: it did less, so a ratio to it flatters
// nobody. Nil if there is none.
func (run *Run) beside(result *Result, subject string) *Result {
	var best *Result
	for i := range run.Results {
		r := &run.Results[i]
		switch {
		case r.Subject != subject || r.Problem != "" || r.Rules > result.Rules:
		case r.Scenario != result.Scenario || r.Nodes != result.Nodes || r.Writers != result.Writers:
		case r.Mode != "" && r.Mode != result.Mode:
		case best == nil || r.Rules > best.Rules:
			best = r
		}
	}
	return best
}

// ownBytes are those that the subject itself brought into etcd: all, less those of the load.
// They are unknown where the load was not measured alone. Who wrote nothing brought nothing: the
// load is not the same to the byte.
func (r reading) ownBytes() (bytes int64, known bool) { return ownBytes(r.Phase, r.nobody) }

func ownBytes(phase, nobody *Phase) (bytes int64, known bool) {
	if phase == nil || nobody == nil || phase.EtcdBytes == 0 {
		return 0, false
	}
	if tallyOf(phase.Requests).writes == 0 {
		return 0, true
	}
	return max(0, phase.EtcdBytes-nobody.EtcdBytes), true
}

func (r reading) bytesRatio() ratio {
	ours, known := r.ownBytes()
	floors, floorKnown := ownBytes(r.floor, r.nobody)
	if !known || !floorKnown {
		return 0
	}
	return over(ours, floors)
}

// allocatedRatio is of what the API server allocated, for the load too.
func (r reading) allocatedRatio() ratio {
	if r.floor == nil {
		return 0
	}
	return over(r.Allocated, r.floor.Allocated)
}

// timeRatio is nothing where the pace of the load is the time of anybody.
func (r reading) timeRatio() ratio {
	if r.floor == nil || r.result.Scenario == Steady || r.result.Scenario == Join {
		return 0
	}
	return r.besideFloor(Attempt.had)
}

// besideFloor is how much more of something a phase took than the floor, at equal speeds: the median
// of its pairs.
func (r reading) besideFloor(of amount) ratio {
	return median(r.ratios(of, r.run.elasticity(of)))
}

// ratios are those of the pairs that count.
func (r reading) ratios(of amount, e elasticity) []ratio {
	var all []ratio
	for _, p := range calm(r.pairs) {
		if times := over(of(p.ours), of(p.floor)); times > 0 {
			all = append(all, times/e.slower(p.ours.Work, p.floor.Work))
		}
	}
	return all
}

// median is that of the values, 0 of none.
func median[T ~int64 | ~float64](values []T) T {
	sorted, half := slices.Sorted(slices.Values(values)), len(values)/2
	switch {
	case len(values) == 0:
		return 0
	case len(values)%2 == 0:
		return (sorted[half-1] + sorted[half]) / 2
	}
	return sorted[half]
}

// took is nothing where no taint was to change.
func (r reading) took() time.Duration {
	if r.result.Scenario == Steady {
		return 0
	}
	return r.Took
}

// latency is that of changes of conditions, where there are any.
func (r reading) latency() Quantiles {
	if r.result.Scenario == Steady || slices.Contains(without, r.result.Scenario) {
		return Quantiles{}
	}
	return r.Latency
}

func (r reading) cpuRatio() ratio {
	if r.floor == nil {
		return 0
	}
	return r.besideFloor(Attempt.used)
}

func (r reading) requestsRatio() ratio {
	if r.floor == nil {
		return 0
	}
	return over(tallyOf(r.Requests).total(), tallyOf(r.floor.Requests).total())
}

// changes is how many changes of nodes the phase asked for: what the benchmark counted, else
// one a node where every node was released or held once. A node that flaps may be changed as
// often as it flips, and need not.
func (r reading) changes() (least, most int, known bool) {
	if counted, ok := r.Extra["changes"]; ok {
		return int(counted), int(counted + r.Extra["flips"]), true
	}
	once := []string{Flip, Many, Busy, Slow}
	if slices.Contains(once, r.result.Scenario) && (r.Name == "release" || r.Name == "hold") {
		return r.result.Nodes, r.result.Nodes, true
	}
	return 0, 0, false
}

// told is how many changes may have an event: a node that is born held has changed too, and
// nobody had to write it.
func (r reading) told() (least, most int, known bool) {
	least, most, known = r.changes()
	births := int(r.Extra["births"])
	return least + births, most + births, known
}

// left are the requests after quiet. A watch that is begun again is no work: all are, now and
// then. Nor is it that an event which happened again is counted, which is told once a minute: a node
// that flaps has two events for each rule.
func (r reading) left() map[string]int {
	work := maps.Clone(r.Left)
	if r.Extra["flips"] > 0 && work["patch events"] <= 2*r.result.Rules {
		delete(work, "patch events")
	}
	maps.DeleteFunc(work, func(request string, count int) bool { return count == 0 || strings.HasPrefix(request, "watch ") })
	return work
}

// worst is the largest of the ratios of a result's phases.
func worst(readings []reading, of func(reading) ratio) ratio {
	var most ratio
	for _, r := range readings {
		most = max(most, of(r))
	}
	return most
}
