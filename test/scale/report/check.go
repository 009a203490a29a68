package report

import (
	"fmt"
	"time"
)

// checkBytesLimit is larger than the budget. In a small cluster the status of the rule is a larger share, and a slow
// machine writes it more often.
const checkBytesLimit = 1.5

// Check returns the limits that a run exceeds. It checks counts and bytes, which hold on any machine, and no times.
func Check(run Run) []string {
	var problems []string
	add := func(r *Result, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s, %d nodes, %d rules: ", r.Phase, r.Nodes, r.Rules)+fmt.Sprintf(format, args...))
	}
	ours := 0
	for i := range run.Results {
		r := &run.Results[i]
		if r.Problem != "" {
			add(r, "%s did not finish: %s", r.Subject, r.Problem)
		} else if r.Subject == Ours {
			ours++
			checkCounts(r, add)
		}
	}
	if ours == 0 {
		problems = append(problems, "no phase of "+Ours+" was measured")
	}
	compared := 0
	for _, g := range run.groups() {
		// The manager writes status once per second and rule, so with several rules the bytes depend on the machine.
		if ratio := g.bytesRatio(); ratio > 0 && g.rules == 1 {
			compared++
			if ratio > checkBytesLimit {
				add(g.ours[0], "bytes into etcd are %s those of the floor, limit is %s", times(ratio), times(checkBytesLimit))
			}
		}
	}
	if compared == 0 {
		problems = append(problems, "bytes into etcd were not compared: a flip with 1 rule is needed of "+Ours+", "+Floor+" and "+LoadOnly)
	}
	return problems
}

func checkCounts(r *Result, add func(*Result, string, ...any)) {
	sent := tallyOf(r.Requests)
	if sent.nodes != r.Changes {
		add(r, "%d PATCHes of nodes for %d changes, must be 1 per change", sent.nodes, r.Changes)
	}
	if limit := r.Changes + r.Created; sent.events > limit {
		add(r, "%d events for %d changes, limit is 1 per change", sent.events, limit)
	}
	// One write per second, one when the phase begins and one when it ends.
	if limit := r.Rules * (int((r.Took+r.Quiet)/time.Second) + 2); sent.status > limit {
		add(r, "%d status writes, limit is %d: 2 per rule, and 1 per rule and second", sent.status, limit)
	}
	if left := r.left(); left > 0 {
		add(r, "%d requests after the manager was quiet, must be 0: %v", left, r.Left)
	}
	if r.Phase == Steady && sent.writes > 0 {
		add(r, "%d writes while nothing changed, must be 0: %v", sent.writes, r.Requests)
	}
	if r.Untainted > 0 {
		add(r, "%d nodes were created without the taint, must be 0", r.Untainted)
	}
}
