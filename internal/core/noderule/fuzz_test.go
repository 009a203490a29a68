package noderule_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// fuzzRules are rules in every standing, so that a fuzzed annotation can meet each of them.
func fuzzRules() []*v1alpha1.NodeReadinessRule {
	return rules(
		rule("net"),
		rule("boot", bootstrapOnly, taintKey("readiness.k8s.io/Boot")),
		rule("away", selects("role", "gateway")),
		rule("previews", dryRun),
		rule("leaves", deleting, bootstrapOnly, taintKey("readiness.k8s.io/Leaves")),
		rule("loses", younger),
		rule("invalid", taintValue("not valid"), taintKey("readiness.k8s.io/Invalid")),
	)
}

// FuzzPlan writes arbitrary annotations and taints on a node, as any client that may write nodes can.
func FuzzPlan(f *testing.F) {
	for _, r := range fuzzRules() {
		record := `{"rule":"` + r.Name + `","taint":"` + r.Spec.Taint.Key + `:NoSchedule","origin":"added","since":"2026-03-01T01:00:00Z"}`
		f.Add(holdKey(r.Name), record, completedKey(r.Name), `{"rule-name":"x"}`, r.Spec.Taint.Key, "NoSchedule", true)
		f.Add(holdKey(r.Name), "{", v1alpha1.CompletedPrefix+r.Name, "", r.Spec.Taint.Key, "NoExecute", false)
	}
	forged := `{"rule":"x","taint":"` + notReady + `:NoExecute"}`
	f.Add(holdKey("gone"), forged, v1alpha1.HoldPrefix, forged, notReady, "NoSchedule", false)
	f.Add(holdKey("net"), forged, holdKey("leaves"), forged, "readiness.k8s.io", "", true)
	f.Add(holdKey("gone"), `{"taint":":"}`, holdKey("loses"), `{"taint":"readiness.k8s.io/:"}`, "readiness.k8s.io/", "", true)
	f.Add("", "", v1alpha1.CompletedPrefix, `{"rule-name":5}`, "", "", false)
	f.Add(completedKey("gone"), `{"rule-name":"gone"}`, v1alpha1.CompletedPrefix+"\xff\xfe--------------------------------é", "x", "é", "é", true)

	book := noderule.NewRulebook(fuzzRules())
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2, taintKey, effect string, met bool) {
		status := False
		if met {
			status = True
		}
		plain := worker(reports("NetworkReady", status), tainted(notReady+":NoExecute", hold))
		n := worker(reports("NetworkReady", status), tainted(notReady+":NoExecute", taintKey+":"+effect, hold),
			annotated(key1, value1), annotated(key2, value2))

		plan := book.Plan(n, noon)
		checkForeignSurvive(t, plan, n)
		if again := book.Plan(plan.Apply(n), noon.Add(time.Hour)); !again.Empty() {
			t.Fatalf("planned %+v, then %+v", plan, again)
		}
		settled := book.Plan(plain, noon).Apply(plain)
		if after := addAnnotations(settled, n); !book.Concerns(settled, after) && !book.Plan(after, noon).Empty() {
			t.Fatalf("Concerns is false, but the plan is %+v", book.Plan(after, noon))
		}
	})
}

// addAnnotations returns the node with the other's annotations in addition to its own.
func addAnnotations(n, other *noderule.Node) *noderule.Node {
	merged := worker()
	for _, from := range []*noderule.Node{n, other} {
		for key, value := range from.Annotations {
			merged.Annotations[key] = value
		}
	}
	merged.Taints, merged.Conditions = n.Taints, n.Conditions
	return merged
}
