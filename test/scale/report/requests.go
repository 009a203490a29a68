package report

import "strings"

// tally is what a subject asked of the API server, leases aside: those are renewed whatever
// happens.
type tally struct {
	nodes  int // writes of nodes, by whatever verb
	status int // writes of the status of rules
	events int
	others int // other writes, and all reads
	writes int // all but reads
}

func (t tally) total() int { return t.nodes + t.status + t.events + t.others }

// tallyOf sorts counts by verb and resource, e.g. "patch nodes": 5000.
func tallyOf(requests map[string]int) tally {
	var t tally
	for request, count := range requests {
		verb, resource, _ := strings.Cut(request, " ")
		if resource == "leases" {
			continue
		}
		writes := isWrite(verb)
		if writes {
			t.writes += count
		}
		switch {
		case writes && resource == "nodes":
			t.nodes += count
		case writes && resource == "events":
			t.events += count
		case writes && strings.HasSuffix(resource, "/status") && resource != "nodes/status":
			t.status += count
		default:
			t.others += count
		}
	}
	return t
}

func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection", "apply":
		return true
	}
	return false
}

func sum(counts map[string]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}
