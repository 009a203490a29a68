package report

import "strings"

// tally counts the requests of a result by kind.
type tally struct {
	nodes, status, events int // writes of nodes, of the status of rules, and of events
	writes                int // all writes
	others                int // other writes, and all reads
}

func tallyOf(requests map[string]int) tally {
	var t tally
	for request, count := range requests {
		verb, resource, _ := strings.Cut(request, " ")
		write := verb != "get" && verb != "list" && verb != "watch"
		if write {
			t.writes += count
		}
		switch {
		case write && resource == "nodes":
			t.nodes += count
		case write && resource == "events":
			t.events += count
		case write && resource == "nodereadinessrules/status":
			t.status += count
		default:
			t.others += count
		}
	}
	return t
}

// left returns the number of requests after the subject was quiet. A watch that is renewed does not count.
func (r *Result) left() int {
	count := 0
	for request, n := range r.Left {
		if !strings.HasPrefix(request, "watch ") {
			count += n
		}
	}
	return count
}
