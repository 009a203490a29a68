package report

import (
	"cmp"
	"slices"
)

// group has the results of one phase at one size.
type group struct {
	phase        string
	nodes, rules int
	ours, floor  []*Result
	loadBytes    int64 // bytes that etcd received for the load only; 0: unknown
}

// groups returns the phases that Readygate's manager finished.
func (run *Run) groups() []group {
	var all []group
	for i := range run.Results {
		r := &run.Results[i]
		if r.Problem != "" || r.Subject != Ours && r.Subject != Floor {
			continue
		}
		at := slices.IndexFunc(all, func(g group) bool { return g.phase == r.Phase && g.nodes == r.Nodes && g.rules == r.Rules })
		if at < 0 {
			at = len(all)
			all = append(all, group{phase: r.Phase, nodes: r.Nodes, rules: r.Rules, loadBytes: run.loadBytes(r)})
		}
		if r.Subject == Ours {
			all[at].ours = append(all[at].ours, r)
		} else {
			all[at].floor = append(all[at].floor, r)
		}
	}
	all = slices.DeleteFunc(all, func(g group) bool { return len(g.ours) == 0 })
	slices.SortStableFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.rules, b.rules), cmp.Compare(slices.Index(phases, a.phase), slices.Index(phases, b.phase)))
	})
	return all
}

// loadBytes returns the bytes of the load of a result. They do not depend on the rules.
func (run *Run) loadBytes(r *Result) int64 {
	for _, other := range run.Results {
		if other.Subject == LoadOnly && other.Phase == r.Phase && other.Nodes == r.Nodes && other.Problem == "" {
			return other.EtcdBytes
		}
	}
	return 0
}

func (g group) flip() bool { return g.phase == Release || g.phase == Hold }

// ratios divide a value of Readygate by that of the floor, for each pair that has both.
func (g group) ratios(of func(*Result) float64) []float64 {
	var all []float64
	for _, r := range g.ours {
		at := slices.IndexFunc(g.floor, func(f *Result) bool { return f.Pair == r.Pair })
		if at >= 0 && of(r) > 0 && of(g.floor[at]) > 0 {
			all = append(all, of(r)/of(g.floor[at]))
		}
	}
	return all
}

// timeRatios returns the ratios of the time until the last taint changed. Only flips have them: other phases last as long
// as their load.
func (g group) timeRatios() []float64 {
	if !g.flip() {
		return nil
	}
	return g.ratios(took)
}

// ratio divides the medians. It is for values that some runs lack, or that do not depend on the speed of the machine.
func (g group) ratio(of func(*Result) float64) float64 {
	ours, floor := medianOf(g.ours, of), medianOf(g.floor, of)
	if !g.flip() || floor == 0 {
		return 0
	}
	return ours / floor
}

// bytesRatio is the ratio of the bytes into etcd, without those of the load.
func (g group) bytesRatio() float64 {
	if g.loadBytes == 0 {
		return 0
	}
	return g.ratio(func(r *Result) float64 { return float64(max(0, r.EtcdBytes-g.loadBytes)) })
}

func took(r *Result) float64      { return float64(r.Took) }
func p99(r *Result) float64       { return float64(r.P99) }
func cpu(r *Result) float64       { return float64(r.CPU) }
func peak(r *Result) float64      { return float64(r.Peak) }
func allocated(r *Result) float64 { return float64(r.Allocated) }

// statusRate is the number of status writes per rule and second, without the first.
func statusRate(r *Result) float64 {
	each := float64(tallyOf(r.Requests).status) / float64(max(1, r.Rules))
	return max(0, each-1) / max(1, (r.Took+r.Quiet).Seconds())
}

// writeRate is the number of writes of the subject per second.
func writeRate(r *Result) float64 { return float64(tallyOf(r.Requests).writes) / r.Took.Seconds() }

func most(results []*Result, of func(*Result) float64) float64 {
	var value float64
	for _, r := range results {
		value = max(value, of(r))
	}
	return value
}

// medianOf returns the median of the values above 0.
func medianOf(results []*Result, of func(*Result) float64) float64 {
	var values []float64
	for _, r := range results {
		if value := of(r); value > 0 {
			values = append(values, value)
		}
	}
	return median(values)
}

// median returns 0 if there are no values.
func median(values []float64) float64 {
	sorted, half := slices.Sorted(slices.Values(values)), len(values)/2
	switch {
	case len(values) == 0:
		return 0
	case len(values)%2 == 0:
		return (sorted[half-1] + sorted[half]) / 2
	}
	return sorted[half]
}
