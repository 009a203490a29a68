package noderule_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// A watch of nodes shows once what the admission policy added.
func TestAdmittedReturnsTheTaintsThatTheAPIServerAdded(t *testing.T) {
	obj := rule("r")
	book := noderule.NewRulebook([]*v1alpha1.NodeReadinessRule{obj})
	with := func(origin noderule.Origin) *noderule.Node {
		key, value := noderule.AdmissionRecord(book.Rules()[0], origin)
		n := node()
		n.Annotations = map[string]string{key: value}
		return n
	}
	forged := node()
	forged.Annotations = map[string]string{v1alpha1.HoldPrefix + string(obj.UID): "no JSON", v1alpha1.HoldPrefix + "unknown": `{"origin":"created"}`}
	tests := map[string]struct {
		before, after *noderule.Node
		want          int
	}{
		"a node that was created with the taint": {after: with(noderule.OriginCreated), want: 1},
		"a node that was labelled":               {before: node(), after: with(noderule.OriginLabelled), want: 1},
		"a node that was held before":            {before: with(noderule.OriginCreated), after: with(noderule.OriginCreated)},
		"a node that we held":                    {before: node(), after: with(noderule.OriginAdded)},
		"a record that cannot be read":           {after: forged},
		"a node that was never held":             {after: node()},
		"a node that was released":               {before: with(noderule.OriginCreated), after: node()},
		"a node that we adopted at creation":     {after: with(noderule.OriginAdopted)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := book.Admitted(tc.before, tc.after)
			if len(got) != tc.want {
				t.Fatalf("got %v", got)
			}
			if tc.want == 1 && (got[0].Kind != noderule.Added || got[0].Rule != "r" || got[0].UID != obj.UID) {
				t.Errorf("got %+v", got[0])
			}
		})
	}
}

// A rule whose dryRun becomes true keeps the nodes that it holds. A taint that an API server adds to a new node after that,
// because it has not observed the change, is removed.
func TestNodeTaintedAtCreationForADryRunRuleIsReleased(t *testing.T) {
	preview := rule("net", dryRun, func(r *v1alpha1.NodeReadinessRule) { r.Status.DryRunSince = &metav1.Time{Time: noon} })
	unseen := rule("net", dryRun)
	tests := map[string]struct {
		rule    *v1alpha1.NodeReadinessRule
		created time.Time
		origin  noderule.Origin
		release bool
	}{
		"created before the rule became a preview": {preview, noon.Add(-time.Second), noderule.OriginCreated, false},
		"created as it became one":                 {preview, noon, noderule.OriginCreated, true},
		"created after it became one":              {preview, noon.Add(time.Hour), noderule.OriginCreated, true},
		"held by the manager":                      {preview, noon.Add(time.Hour), noderule.OriginAdded, false},
		"labelled":                                 {preview, noon.Add(time.Hour), noderule.OriginLabelled, false},
		"before anybody has said since when":       {unseen, noon.Add(time.Hour), noderule.OriginCreated, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			book := noderule.NewRulebook(rules(tc.rule))
			n := worker(tainted(hold))
			n.Created = tc.created
			key, value := noderule.AdmissionRecord(book.Rules()[0], tc.origin)
			n.Annotations = map[string]string{key: value}
			if plan := book.Plan(n, noon); plan.Empty() == tc.release {
				t.Errorf("plan %+v", plan)
			}
		})
	}
}
