package dashboard_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/view"
)

// took returns a node whose rules' requirements were met this long after its creation.
func took(seconds map[string]int) view.Node {
	n := view.Node{Created: noon}
	for rule, s := range seconds {
		n.Rules = append(n.Rules, view.Standing{Rule: rule, State: noderule.Released, Met: noon.Add(time.Duration(s) * time.Second)})
	}
	return n
}

func standing(s view.Standing) view.Node { return view.Node{Created: noon, Rules: []view.Standing{s}} }

func TestTimeToReadinessIsADistribution(t *testing.T) {
	met := noon.Add(3 * time.Second)
	var many []view.Node
	for s := 1; s <= 100; s++ {
		many = append(many, took(map[string]int{"net": s}))
	}
	cases := map[string]struct {
		nodes []view.Node
		rule  string
		want  dashboard.Distribution
	}{
		"no nodes": {want: dashboard.Distribution{Bars: map[int64]int{}}},
		"one node": {nodes: []view.Node{took(map[string]int{"net": 7})}, want: dashboard.Distribution{Count: 1, Median: 7, P90: 7, Bars: map[int64]int{10: 1}}},
		"a hundred nodes": {nodes: many, want: dashboard.Distribution{
			Count: 100, Median: 50, P90: 90, Bars: map[int64]int{1: 1, 2: 1, 5: 3, 10: 5, 20: 10, 30: 10, 60: 30, 120: 40}}},
		"longer than any bar": {nodes: []view.Node{took(map[string]int{"net": 90000})}, want: dashboard.Distribution{Count: 1, Median: 90000, P90: 90000, Bars: map[int64]int{0: 1}}},
		"the last of all rules counts": {nodes: []view.Node{took(map[string]int{"net": 3, "gpu": 70})},
			want: dashboard.Distribution{Count: 1, Median: 70, P90: 70, Bars: map[int64]int{120: 1}}},
		"or that of one rule": {nodes: []view.Node{took(map[string]int{"net": 3, "gpu": 70})}, rule: "net",
			want: dashboard.Distribution{Count: 1, Median: 3, P90: 3, Bars: map[int64]int{5: 1}}},
		"a node that the rule does not select": {nodes: []view.Node{took(map[string]int{"net": 3})}, rule: "gpu", want: dashboard.Distribution{Bars: map[int64]int{}}},
		"a node that is held": {nodes: []view.Node{standing(view.Standing{Rule: "net", State: noderule.Held, Held: true})},
			want: dashboard.Distribution{Bars: map[int64]int{}}},
		"a node that is about to be released": {nodes: []view.Node{standing(view.Standing{Rule: "net", State: noderule.Released, Held: true, Met: met})},
			want: dashboard.Distribution{Bars: map[int64]int{}}},
		"a preview does not count among all rules": {nodes: []view.Node{standing(view.Standing{Rule: "net", State: noderule.Released, Preview: true, Met: met})},
			want: dashboard.Distribution{Bars: map[int64]int{}}},
		"and does for itself": {nodes: []view.Node{standing(view.Standing{Rule: "net", State: noderule.Released, Preview: true, Met: met})}, rule: "net",
			want: dashboard.Distribution{Count: 1, Median: 3, P90: 3, Bars: map[int64]int{5: 1}}},
		"a condition that is older than the node": {nodes: []view.Node{standing(view.Standing{Rule: "net", State: noderule.Released, Met: noon.Add(-time.Hour)})},
			want: dashboard.Distribution{Count: 1, Bars: map[int64]int{1: 1}}},
		"an unknown time": {nodes: []view.Node{standing(view.Standing{Rule: "net", State: noderule.Released, Completed: true})},
			want: dashboard.Distribution{Bars: map[int64]int{}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dashboard.TimesOf(c.nodes, c.rule); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
