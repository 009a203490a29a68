package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// oursAt are the finished phases of ours with so many nodes.
func (run *Run) oursAt(nodes int) []reading {
	var all []reading
	for _, t := range run.trials() {
		for _, result := range t.results {
			if result.Subject == Ours && result.Nodes == nodes && result.Problem == "" {
				all = append(all, run.read(result)...)
			}
		}
	}
	return all
}

// worstAt is the largest number of the readings that have one, and which it is of.
func worstAt(readings []reading, of func(reading) (value float64, known bool)) (most float64, where reading, known bool) {
	for _, r := range readings {
		if value, ok := of(r); ok && (!known || value > most) {
			most, where, known = value, r, true
		}
	}
	return most, where, known
}

// where names a reading other than of a flip with one rule, which is the ordinary one.
func (r reading) where() string {
	switch {
	case r.result.Scenario == Flip && r.result.Rules == 1:
		return ""
	case r.result.Scenario == Flip:
		return fmt.Sprintf(" (%s)", counted(r.result.Rules, "rule"))
	}
	return fmt.Sprintf(" (%s)", lower(titleOf(r.result.Scenario)))
}

// timeAt judges all flips with so many nodes, by rules. One that ours did not get through is
// missed.
func timeAt(run *Run, nodes int) answer {
	var words []string
	var most ratio
	for _, t := range run.trials() {
		at := slices.IndexFunc(t.results, func(r *Result) bool { return r.Subject == Ours })
		if t.scenario != Flip || t.nodes != nodes || at < 0 {
			continue
		}
		if t.results[at].Problem != "" {
			return judge(false, "not finished")
		}
		if times := worst(run.read(t.results[at]), reading.timeRatio); times > 0 {
			most = max(most, times)
			words = append(words, fmt.Sprintf("%v with %s", times, counted(t.rules, "rule")))
		}
	}
	if words == nil {
		return answer{}
	}
	return judge(most <= timeLimit, "%s", strings.Join(words, ", "))
}

// forChange is how many requests were sent for one change of a node, less those that the API
// server throttled. What is between the least and the most is 1.
func (r reading) forChange(sent, least, most int, known bool) (times float64, _ bool) {
	if !known || least == 0 || r.Requests == nil {
		return 0, false
	}
	if taken := sent - r.throttled(); taken > most {
		return float64(taken) / float64(most), true
	}
	return float64(min(sent, least)) / float64(least), true
}

// patchesAt finds too few as bad as too many: a change was not made.
func patchesAt(run *Run, nodes int) answer {
	patches := func(r reading) (float64, bool) {
		least, most, known := r.changes()
		return r.forChange(tallyOf(r.Requests).nodes, least, most, known)
	}
	less := func(r reading) (float64, bool) {
		times, known := patches(r)
		return -times, known
	}
	most, where, known := worstAt(run.oursAt(nodes), patches)
	if !known {
		return answer{}
	}
	if least, short, _ := worstAt(run.oursAt(nodes), less); most <= 1 && least > -1 {
		most, where = -least, short
	}
	return judge(most == 1, "%s%s", plain(most, 3), where.where())
}

func eventsAt(run *Run, nodes int) answer {
	most, where, known := worstAt(run.oursAt(nodes), func(r reading) (float64, bool) {
		least, most, known := r.told()
		return r.forChange(tallyOf(r.Requests).events, least, most, known)
	})
	if !known {
		return answer{}
	}
	return judge(most <= 1, "%s%s", plain(most, 3), where.where())
}

// statusAt judges as Check does; the words are of the phase that is closest to the limit.
func statusAt(run *Run, nodes int) answer {
	most, where, known := worstAt(run.oursAt(nodes), func(r reading) (float64, bool) {
		return float64(r.statusTaken()) / float64(max(1, r.statusAllowed())), r.Requests != nil
	})
	if !known {
		return answer{}
	}
	each := float64(where.statusTaken()) / float64(max(1, where.result.Rules))
	words := plain(each, 1)
	if lasted := span(where.Took + where.Quiet); lasted != "" {
		words += " in " + lasted
	}
	return judge(most <= 1, "%s%s", words, where.where())
}

func bytesAt(run *Run, nodes int) answer {
	most, where, known := worstAt(run.oursAt(nodes), func(r reading) (float64, bool) {
		return float64(r.bytesRatio()), r.bytesRatio() > 0
	})
	if !known {
		return answer{}
	}
	return judge(most <= bytesLimit, "%v%s", ratio(most), where.where())
}

// memoryAt takes what was not finished too: that much was needed until then.
func memoryAt(run *Run, nodes int) answer {
	var most *Result
	for i := range run.Results {
		if r := &run.Results[i]; r.Subject == Ours && r.Nodes == nodes && r.Peak > 0 && (most == nil || r.Peak > most.Peak) {
			most = r
		}
	}
	switch {
	case nodes != memoryNodes && most == nil:
		return answer{unasked, ""}
	case most == nil:
		return answer{}
	}
	words := size(most.Peak) + reading{result: most}.where()
	if nodes != memoryNodes {
		return answer{unasked, words}
	}
	return judge(most.Peak <= memoryLimit, "%s", words)
}

// quietAt asks for no size that is smaller than one that was measured: more nodes are never
// quieter.
func quietAt(run *Run, nodes int) answer {
	writes, lasted, known := 0, time.Duration(0), false
	for _, r := range run.oursAt(nodes) {
		if r.result.Scenario == Steady && r.Requests != nil {
			writes, lasted, known = writes+tallyOf(r.Requests).writes, lasted+max(r.Load, r.Took), true
		}
	}
	if !known {
		larger := func(r Result) bool {
			return r.Scenario == Steady && r.Subject == Ours && r.Nodes > nodes && r.Problem == ""
		}
		if slices.ContainsFunc(run.Results, larger) {
			return answer{unasked, ""}
		}
		return answer{}
	}
	words := counted(writes, "write")
	if lasted > 0 {
		words += " in " + span(lasted)
	}
	return judge(writes == 0, "%s", words)
}
