package noderule_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// The rulebook of these cases: one rule for workers, one for gateways, both bootstrap-only
// so that completions matter too.
func relevanceBook() *noderule.Rulebook {
	return noderule.NewRulebook(rules(
		rule("net", bootstrapOnly),
		rule("gate", younger, bootstrapOnly, selects("role", "gateway"), requires(requirement("GateReady", True)), taintKey("readiness.k8s.io/GateReady")),
	))
}

// relevanceCase is a change that concerns some rules, in both directions.
type relevanceCase struct {
	before, after *noderule.Node
	concerned     []string
}

func (c relevanceCase) check(t *testing.T) {
	for direction, nodes := range map[string][2]*noderule.Node{"forth": {c.before, c.after}, "back": {c.after, c.before}} {
		book := relevanceBook()
		var got []string
		for _, r := range book.Concerned(nodes[0], nodes[1]) {
			got = append(got, r.Name)
		}
		wantEqual(t, direction+": rules concerned", got, c.concerned)
		if got, want := book.Concerns(nodes[0], nodes[1]), len(c.concerned) > 0; got != want {
			t.Errorf("%s: concerns a rule: %t, want %t", direction, got, want)
		}
	}
}

func TestIrrelevantChanges(t *testing.T) {
	heartbeat := func(n *noderule.Node) {
		for i := range n.Conditions {
			n.Conditions[i].LastHeartbeatTime = metav1.NewTime(noon)
			n.Conditions[i].LastTransitionTime = metav1.NewTime(noon)
			n.Conditions[i].Message = "still alive"
			n.Conditions[i].Reason = "Alive"
		}
	}
	status := []nodeOption{reports("Ready", True), reports("NetworkReady", False)}
	for name, c := range map[string]relevanceCase{
		"nothing":                     {before: worker(status...), after: worker(status...)},
		"a heartbeat":                 {before: worker(status...), after: worker(append(status, heartbeat)...)},
		"conditions in another order": {before: worker(status...), after: worker(status[1], status[0])},
		"another condition comes between two of a type": {before: worker(status[1], reports("NetworkReady", True), status[0]),
			after: worker(status[1], status[0], reports("NetworkReady", True))},
		"a foreign label":                         {before: worker(), after: worker(label("zone", "a"))},
		"the value of a foreign label":            {before: worker(label("zone", "a")), after: worker(label("zone", "b"))},
		"another role that no rule names":         {before: node(label("role", "a")), after: node(label("role", "b"))},
		"a foreign taint":                         {before: worker(), after: worker(tainted(notReady + ":NoExecute"))},
		"a taint with our key and another effect": {before: worker(), after: worker(tainted(networkTaint + ":NoExecute"))},
		"taints in another order": {before: worker(tainted(hold, notReady+":NoExecute")),
			after: worker(tainted(notReady+":NoExecute", hold))},
		"the value of a taint":                                {before: worker(tainted(hold)), after: worker(tainted(networkTaint + "=other:NoSchedule"))},
		"a foreign condition":                                 {before: worker(), after: worker(reports("Ready", True))},
		"the status of a foreign condition":                   {before: worker(reports("Ready", True)), after: worker(reports("Ready", False))},
		"a foreign annotation":                                {before: worker(), after: worker(annotated("example.com/x", "y"))},
		"an annotation that only starts alike":                {before: worker(), after: worker(annotated("readygate.dev/holder", "y"))},
		"the older completion of an unknown rule":             {before: worker(), after: worker(annotated(v1alpha1.CompletedPrefix+"unknown", "y"))},
		"a condition of a rule that does not select the node": {before: worker(), after: worker(reports("GateReady", True))},
		"the taint of a rule that does not select the node":   {before: worker(), after: worker(tainted("readiness.k8s.io/GateReady:NoSchedule"))},
		"another node that no rule selects":                   {before: node(), after: node(recreated)},
	} {
		t.Run(name, c.check)
	}
}

// A heartbeat of a node that is not held concerns a rule with onDeadline Release only while the deadline releases the node.
func TestHeartbeatIsRelevantAfterAReleaseByTheDeadline(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("net", deadline(time.Hour), releaseStuck, maxUnavailable("1"))))
	key := v1alpha1.MemoryPrefix + string(uidOf("net"))
	for value, want := range map[string]bool{
		`{"rule":"net","inUse":"2026-03-01T12:00:00Z"}`:   false,
		`{"rule":"net","expired":"2026-03-01T12:00:00Z"}`: true,
	} {
		before := worker(reports(network, True))
		before.Annotations[key] = value
		if got := book.Concerns(before, heard(before, noon.Add(time.Minute))); got != want {
			t.Errorf("%s: a heartbeat concerns a rule: %t, want %t", value, got, want)
		}
	}
}

// After a clock was set back, heartbeats are older: the node must be evaluated again at once.
func TestOlderHeartbeatIsRelevant(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("net", requires(maxAge(requirement(network, True), time.Hour)))))
	now := heard(worker(reports(network, True)), noon)
	if book.Concerns(now, heard(now, noon.Add(time.Minute))) {
		t.Error("a heartbeat of a node that is not held concerns a rule")
	}
	if !book.Concerns(now, heard(now, noon.Add(-2*time.Hour))) {
		t.Error("a heartbeat of two hours ago concerns no rule")
	}
}

func TestRelevantChanges(t *testing.T) {
	net, gate, both := []string{"net"}, []string{"gate"}, []string{"net", "gate"}
	for name, c := range map[string]relevanceCase{
		"a condition that a rule names appears":           {before: worker(), after: worker(reports("NetworkReady", Unknown)), concerned: net},
		"a condition that a rule names changes":           {before: worker(reports("NetworkReady", False)), after: worker(reports("NetworkReady", True)), concerned: net},
		"a node becomes selected":                         {before: node(), after: worker(), concerned: net},
		"a node changes sides":                            {before: worker(), after: node(label("role", "gateway")), concerned: both},
		"the taint of a rule appears":                     {before: worker(), after: worker(tainted(hold)), concerned: net},
		"the taint of a rule appears, with another value": {before: worker(), after: worker(tainted(networkTaint + ":NoSchedule")), concerned: net},
		"the taint of a rule gets another effect":         {before: worker(tainted(hold)), after: worker(tainted(networkTaint + ":NoExecute")), concerned: net},
		"a record appears":                                {before: worker(), after: worker(owned("net", holdRecord)), concerned: net},
		"a record appears where its rule does not select": {before: worker(), after: worker(owned("gate", holdRecord)), concerned: gate},
		"a record changes":                                {before: worker(owned("net", holdRecord)), after: worker(annotated(holdKey("net"), "x")), concerned: net},
		"a completion appears":                            {before: worker(), after: worker(completed("net")), concerned: net},
		"a completion of the older form appears":          {before: worker(), after: worker(annotated(v1alpha1.CompletedPrefix+"net", "x")), concerned: net},
		"a node was recreated with its name":              {before: worker(), after: worker(recreated), concerned: net},
		"a heartbeat comes together with news": {before: worker(reports("Ready", True)),
			after: worker(reports("Ready", False), reports("NetworkReady", True)), concerned: net},
	} {
		t.Run(name, c.check)
	}
}

// recreated makes the node another one of the same name.
func recreated(n *noderule.Node) { n.UID, n.Created = "node-2", noon.Add(time.Hour) }

// API servers store a condition that a client writes twice; the first one counts.
func TestRemovedDuplicateConditionIsRelevant(t *testing.T) {
	twice := worker(reports("NetworkReady", True), reports("NetworkReady", False))
	once := worker(reports("NetworkReady", False))
	book := noderule.NewRulebook(rules(rule("net")))
	if book.Plan(twice, noon).Empty() != book.Plan(once, noon).Empty() && !book.Concerns(twice, once) {
		t.Error("the plan changes, and Concerns is false for the change")
	}
}

// A dry run counts the taints that would go, also where the rule no longer selects the node:
// its counts are stale if it does not observe that such a taint is removed.
func TestOwnedTaintOnAnUnselectedNodeIsRelevant(t *testing.T) {
	preview := rule("net", dryRun)
	before, after := node(tainted(hold), owned("net", holdRecord)), node(owned("net", holdRecord))
	was, is := summarize(preview, 0, before), summarize(preview, 0, after)
	if was.ToRemove != 1 || is.ToRemove != 0 {
		t.Fatalf("to remove: %d, then %d; want 1, then 0", was.ToRemove, is.ToRemove)
	}
	if concerned := noderule.NewRulebook(rules(preview)).Concerned(before, after); len(concerned) != 1 {
		t.Errorf("its numbers changed, and the change is said to concern %d rules", len(concerned))
	}
}

// The records and taints of a deleted rule must be removed, although no rule is concerned.
func TestRecordsOfUnknownRulesAreRelevantToThePlan(t *testing.T) {
	for name, after := range map[string]*noderule.Node{
		"a record of an unknown rule":     worker(owned("gone", holdRecord)),
		"a record that cannot be read":    worker(annotated(holdKey("gone"), "x")),
		"a completion of an unknown rule": worker(completed("gone")),
	} {
		for books, book := range map[string]*noderule.Rulebook{"with rules": relevanceBook(), "without rules": noderule.NewRulebook(nil)} {
			t.Run(name+", "+books, func(t *testing.T) {
				if !book.Concerns(worker(), after) {
					t.Error("Concerns is false")
				}
				if rules := book.Concerned(worker(), after); len(rules) > 0 {
					t.Errorf("concerns rules: %v", rules)
				}
			})
		}
	}
}

func TestWithoutRulesConditionsAndTaintsAreNotRelevant(t *testing.T) {
	after := worker(tainted(hold), reports("NetworkReady", True), label("zone", "a"), recreated)
	if noderule.NewRulebook(nil).Concerns(worker(), after) {
		t.Error("there is no rule that it could concern")
	}
}
