package readiness_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/readiness"
)

// Who watches nodes can tell what the API server did by itself, once.
func TestWhatTheAPIServerDidIsTold(t *testing.T) {
	obj := rule("r")
	book := readiness.NewRulebook([]*v1alpha1.NodeReadinessRule{obj})
	with := func(origin readiness.Origin) *readiness.Node {
		key, value := readiness.AdmissionRecord(book.Rules()[0], origin)
		n := node()
		n.Annotations = map[string]string{key: value}
		return n
	}
	forged := node()
	forged.Annotations = map[string]string{v1alpha1.HoldPrefix + string(obj.UID): "no JSON", v1alpha1.HoldPrefix + "unknown": `{"origin":"born"}`}
	tests := map[string]struct {
		before, after *readiness.Node
		want          int
	}{
		"a node that was born held":       {after: with(readiness.OriginBorn), want: 1},
		"a node that was labelled":        {before: node(), after: with(readiness.OriginLabelled), want: 1},
		"a node that was held before":     {before: with(readiness.OriginBorn), after: with(readiness.OriginBorn)},
		"a node that we held":             {before: node(), after: with(readiness.OriginAdded)},
		"a record that cannot be read":    {after: forged},
		"a node that was never held":      {after: node()},
		"a node that was released":        {before: with(readiness.OriginBorn), after: node()},
		"a node that we adopted at birth": {after: with(readiness.OriginAdopted)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := book.Admitted(tc.before, tc.after)
			if len(got) != tc.want {
				t.Fatalf("got %v", got)
			}
			if tc.want == 1 && (got[0].Kind != readiness.Added || got[0].Rule != "r" || got[0].UID != obj.UID) {
				t.Errorf("got %+v", got[0])
			}
		})
	}
}

// A rule that became a preview leaves what it holds; but what an API server that had not seen
// it yet put on a new node is nobody's wish.
func TestANodeBornHeldByAPreviewIsReleased(t *testing.T) {
	preview := rule("net", dryRun, func(r *v1alpha1.NodeReadinessRule) { r.Status.DryRunSince = &metav1.Time{Time: noon} })
	unseen := rule("net", dryRun)
	tests := map[string]struct {
		rule    *v1alpha1.NodeReadinessRule
		born    time.Time
		origin  readiness.Origin
		release bool
	}{
		"born before the rule became a preview": {preview, noon.Add(-time.Second), readiness.OriginBorn, false},
		"born as it became one":                 {preview, noon, readiness.OriginBorn, true},
		"born after it became one":              {preview, noon.Add(time.Hour), readiness.OriginBorn, true},
		"held by the manager":                   {preview, noon.Add(time.Hour), readiness.OriginAdded, false},
		"labelled":                              {preview, noon.Add(time.Hour), readiness.OriginLabelled, false},
		"before anybody has said since when":    {unseen, noon.Add(time.Hour), readiness.OriginBorn, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			book := readiness.NewRulebook(rules(tc.rule))
			n := worker(tainted(hold))
			n.Created = tc.born
			key, value := readiness.AdmissionRecord(book.Rules()[0], tc.origin)
			n.Annotations = map[string]string{key: value}
			if plan := book.Plan(n, noon); plan.Empty() == tc.release {
				t.Errorf("plan %+v", plan)
			}
		})
	}
}
