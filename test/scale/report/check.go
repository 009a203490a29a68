package report

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Check says in words what a run did that it must not do, whatever the machine: it looks at
// counts and bytes, and never asks how long anything took. A run that cannot show what it is
// for is a problem too.
func Check(run Run) []string {
	var problems []string
	ours, flips, compared := 0, 0, 0
	for i := range run.Results {
		result := &run.Results[i]
		if result.Subject != Ours {
			continue
		}
		ours++
		problems = append(problems, checkResult(result)...)
		for _, r := range run.read(result) {
			if result.Scenario == Flip {
				flips++
			}
			if r.bytesRatio() != 0 {
				compared++
			}
			for _, check := range []func(reading) string{checkPatches, checkEvents, checkStatus, checkLeft, checkBytes, checkSteady, checkRestart, checkBirths, checkUnderWay} {
				if problem := check(r); problem != "" {
					problems = append(problems, fmt.Sprintf("%s, %s: %s %s", result.name(), r.Name, Ours, problem))
				}
			}
		}
	}
	if ours == 0 {
		problems = append(problems, "the run has no result of "+Ours+": nothing was checked")
	}
	if flips > 0 && compared == 0 {
		problems = append(problems, "bytes into etcd were compared nowhere: measure "+Floor+" and "+Nobody+" in the same run")
	}
	return problems
}

func checkResult(r *Result) []string {
	var problems []string
	say := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: %s ", r.name(), r.Subject)+fmt.Sprintf(format, args...))
	}
	if r.Problem != "" {
		say("did not finish: %s", r.Problem)
	}
	if len(r.Phases) == 0 {
		say("has no phase: nothing was checked")
	}
	if r.StatusBytes > statusLimit {
		say("made a rule of %s: at most 64 KiB", size(r.StatusBytes))
	}
	return problems
}

// throttled are requests that the API server did not take and asked to send again.
func (r reading) throttled() int { return r.Refused["429"] }

func checkPatches(r reading) string {
	least, most, known := r.changes()
	if !known {
		return ""
	}
	switch sent := tallyOf(r.Requests).nodes; {
	case sent-r.throttled() > most:
		return fmt.Sprintf("sent %s of nodes for %s: at most 1 each", patches(sent), counted(most, "change"))
	case sent < least:
		return fmt.Sprintf("sent only %s of nodes for %s: 1 each", patches(sent), counted(least, "change"))
	}
	return ""
}

func patches(n int) string {
	if n == 1 {
		return "1 patch"
	}
	return number(n) + " patches"
}

func checkEvents(r reading) string {
	_, most, known := r.told()
	if sent := tallyOf(r.Requests).events; known && sent-r.throttled() > most {
		return fmt.Sprintf("sent %s for %s: at most 1 each", counted(sent, "event"), counted(most, "change"))
	}
	return ""
}

// statusAllowed is one write a second for each rule, and one when it begins and one when it
// ends: a phase can be shorter than a second.
func (r reading) statusAllowed() int {
	return r.result.Rules * (int((r.Took+r.Quiet)/time.Second) + 2)
}

// statusTaken are the writes of status that the API server took, as far as is known: what it
// throttled may have been others.
func (r reading) statusTaken() int { return max(0, tallyOf(r.Requests).status-r.throttled()) }

func checkStatus(r reading) string {
	if sent, allowed := r.statusTaken(), r.statusAllowed(); sent > allowed {
		return fmt.Sprintf("wrote status %s: at most %s, 1 a second for each rule and 2", times(sent), times(allowed))
	}
	return ""
}

func checkLeft(r reading) string {
	var left []string
	work := r.left()
	for _, request := range slices.Sorted(maps.Keys(work)) {
		left = append(left, fmt.Sprintf("%s (%s)", request, times(work[request])))
	}
	if left == nil {
		return ""
	}
	return fmt.Sprintf("had work left after quiet: %s", listed(left))
}

// checkBytes leaves out what depends on time: status, whose writes have a check of their own;
// and a restart, where few changes stand beside it.
func checkBytes(r reading) string {
	if r.result.Scenario == Steady || r.result.Scenario == Restart || r.bytesRatio() == 0 {
		return ""
	}
	ours, _ := r.ownBytes()
	ours -= int64(r.statusTaken()) * r.result.StatusBytes
	floor, _ := ownBytes(r.floor, r.nobody)
	if times := over(ours, floor); times > bytesLimit {
		return fmt.Sprintf("brought %s into etcd, status aside, %v the %s of the floor: at most %v", size(ours), times, size(floor), ratio(bytesLimit))
	}
	return ""
}

func checkSteady(r reading) string {
	if writes := tallyOf(r.Requests).writes; r.result.Scenario == Steady && writes > 0 {
		return fmt.Sprintf("wrote %s while nothing changed: never", times(writes))
	}
	return ""
}

func checkRestart(r reading) string {
	const key = "wasted patches"
	wasted, said := r.Extra[key]
	switch {
	case r.result.Scenario != Restart:
		return ""
	case wasted > 0:
		return fmt.Sprintf("wasted %s after its restart: none", patches(int(wasted)))
	case !said && r.Name == Restart:
		return fmt.Sprintf("was restarted, and the run does not say how many patches were wasted: set Extra[%q]", key)
	}
	return ""
}

func checkBirths(r reading) string {
	if bare := int(r.Extra["born without the taint"]); bare > 0 {
		return fmt.Sprintf("let %s be born without the taint: none", counted(bare, "node"))
	}
	return ""
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return number(n) + " times"
}

// checkUnderWay is asked where a proxy counted them: however slow an API server is, or busy.
func checkUnderWay(r reading) string {
	if most := int(r.Extra["most under way"]); most > underWayLimit {
		return fmt.Sprintf("had %s under way at the same time: at most %d", counted(most, "request"), underWayLimit)
	}
	return ""
}
