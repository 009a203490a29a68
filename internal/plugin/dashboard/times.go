package dashboard

import (
	"net/http"
	"slices"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// bounds are the upper bounds of the bars, in seconds. Longer times are in a last bar without a bound.
var bounds = []int64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600}

// times is the distribution of the time to readiness: from the creation of a node until its requirements were met. Held
// nodes do not count.
type times struct {
	Count  int   `json:"count"`
	Median int64 `json:"median"` // seconds
	P90    int64 `json:"p90"`    // seconds
	Bars   []bar `json:"bars"`
}

// bar counts the nodes whose time is at most UpTo seconds, and above the bound of the previous bar. UpTo is 0 in the last
// bar, which has no bound.
type bar struct {
	UpTo  int64 `json:"upTo"`
	Count int   `json:"count"`
}

// timesOf returns the distribution for one rule, or for all rules if it is empty: then a node is ready when the
// requirements of its last rule are met.
func timesOf(nodes []view.Node, rule string) times {
	var all []int64
	for _, n := range nodes {
		if took, ready := timeOf(n, rule); ready {
			all = append(all, int64(took/time.Second))
		}
	}
	slices.Sort(all)
	t := times{Count: len(all), Median: quantile(all, 50), P90: quantile(all, 90), Bars: make([]bar, len(bounds)+1)}
	for i, bound := range bounds {
		t.Bars[i].UpTo = bound
	}
	for _, took := range all {
		i, _ := slices.BinarySearch(bounds, took)
		t.Bars[i].Count++
	}
	return t
}

// timeOf returns the time to readiness of a node, if the node is ready.
func timeOf(n view.Node, rule string) (took time.Duration, ready bool) {
	for _, s := range n.Rules {
		switch {
		case rule != "" && s.Rule != rule, rule == "" && (s.Preview || s.State == noderule.NotSelected):
			continue
		case s.Held || s.State != noderule.Released || s.Met.IsZero():
			return 0, false
		}
		took, ready = max(took, s.Met.Sub(n.Created)), true
	}
	return took, ready
}

// quantile returns the smallest value that this percentage of values does not exceed; 0 if there are no values.
func quantile(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

func (s *Server) serveTimes(w http.ResponseWriter, r *http.Request) {
	s.answer(w, http.StatusOK, timesOf(s.options.Fleet.Snapshot().Nodes, r.URL.Query().Get("rule")))
}
