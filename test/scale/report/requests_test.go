package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/readygate/readygate/test/scale/report"
)

// rowOf is the line of ours in the table of requests of a run with one phase.
func rowOf(t *testing.T, requests map[string]int) string {
	t.Helper()
	var table bytes.Buffer
	report.Table(&table, report.Run{Results: []report.Result{once(report.Steady, "steady", requests, nil)}})
	_, after, found := strings.Cut(table.String(), "nodes written  status  events  others  left\n")
	if !found {
		t.Fatalf("no requests in\n%s", table.String())
	}
	row, _, _ := strings.Cut(after, "\n")
	return strings.Join(strings.Fields(row), " ")
}

func TestRequestsAreSortedByWhatTheyWrite(t *testing.T) {
	for name, test := range map[string]struct {
		requests map[string]int
		want     string
	}{
		"nodes, by whatever verb":           {map[string]int{"patch nodes": 2, "update nodes": 1}, "readygate 3 0 0 0 0"},
		"status of rules":                   {map[string]int{"update nodereadinessrules/status": 2}, "readygate 0 2 0 0 0"},
		"events":                            {map[string]int{"create events": 2, "patch events": 1}, "readygate 0 0 3 0 0"},
		"reads are others":                  {map[string]int{"list nodes": 1, "watch events": 1}, "readygate 0 0 0 2 0"},
		"status of nodes is no rule's":      {map[string]int{"patch nodes/status": 1}, "readygate 0 0 0 1 0"},
		"leases are renewed in any case":    {map[string]int{"update leases": 60}, "readygate 0 0 0 0 0"},
		"what nobody thought of is counted": {map[string]int{"post /somewhere": 1}, "readygate 0 0 0 1 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rowOf(t, test.requests); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
