package view_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

func TestHeadline(t *testing.T) {
	for name, c := range map[string]struct {
		node  *corev1.Node
		rules []*v1alpha1.NodeReadinessRule
		want  string
	}{
		"created with the taint, not reported": {worker("w", heldBy("net", noderule.OriginCreated)), rules(rule("net")),
			"w is held for 60m by rule net: example.com/net is not reported, must be True"},
		"held, reported False": {worker("w", says("net", False), heldBy("net", noderule.OriginAdded)), rules(rule("net")),
			"w is held for 20m by rule net: example.com/net is False, must be True"},
		"tainted with a label, at an unknown time": {worker("w", heldBy("net", noderule.OriginLabelled)), rules(rule("net")),
			"w is held by rule net: example.com/net is not reported, must be True"},
		"held by two": {worker("w", heldBy("net", noderule.OriginAdded), heldBy("gpu", noderule.OriginCreated)), rules(rule("net"), rule("gpu", younger)),
			"w is held for 60m by rule net: example.com/net is not reported, must be True; and by rule gpu: example.com/gpu is not reported, must be True"},
		"held, but the requirements are met": {worker("w", says("net", True), heldBy("net", noderule.OriginAdded)), rules(rule("net")),
			"w is held for 20m by rule net, which is about to release it"},
		"held by a rule that only previews now": {worker("w", says("net", True), heldBy("net", noderule.OriginAdded)), rules(rule("net", dryRun)),
			"w is held for 20m by rule net, which is now a dry run and keeps its earlier hold"},
		"held, and the API server refuses": {worker("w", says("net", True), heldBy("net", noderule.OriginAdded)), rules(rule("net", refuses("w", "no"))),
			"w is held for 20m by rule net, but the API server rejects the release"},
		"one of two is enough": {worker("w", heldBy("net", noderule.OriginCreated)), rules(rule("net", anyOf("a.b/a", "a.b/b"))),
			"w is held for 60m by rule net: a.b/a is not reported, must be True, or a.b/b is not reported, must be True (one is enough)"},
		"not held yet": {worker("w"), rules(rule("net")),
			"w is not held yet: rule net is about to hold it"},
		"released": {worker("w", says("net", True)), rules(rule("net")),
			"w is released: no rule holds it"},
		"released, but cordoned": {worker("w", says("net", True), cordoned), rules(rule("net")),
			"w is released by every rule; another taint or a cordon keeps pods away"},
		"no rule selects it":    {worker("w", labelled("other")), rules(rule("net")), "no enforced rule selects w"},
		"a rule only previews":  {worker("w"), rules(rule("net", dryRun)), "no enforced rule selects w"},
		"no rule at all":        {worker("w"), nil, "no enforced rule selects w"},
		"a rule is not applied": {worker("w", says("net", True)), rules(rule("net"), rule("two", sameTaintAs("net"), younger)), "w is released: no rule holds it"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explanation(c.node, c.rules...).Headline; got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestChapters(t *testing.T) {
	for name, c := range map[string]struct {
		node  *corev1.Node
		rules []*v1alpha1.NodeReadinessRule
		want  []string
	}{
		"what holds the node comes first": {worker("w", says("a", True), heldBy("b", noderule.OriginCreated)), rules(rule("a"), rule("b", younger)),
			[]string{"b: holds this node, which was created with the taint", "a: does not hold this node: its requirements are met"}},
		"adopted":                     {worker("w", heldBy("a", noderule.OriginAdopted)), rules(rule("a")), []string{"a: holds this node with a taint that already existed"}},
		"not adopted yet":             {worker("w", tainted("readiness.k8s.io/a", corev1.TaintEffectNoSchedule)), rules(rule("a")), []string{"a: holds this node"}},
		"labelled":                    {worker("w", heldBy("a", noderule.OriginLabelled)), rules(rule("a")), []string{"a: holds this node, which was tainted by the request that added a label"}},
		"about to hold":               {worker("w"), rules(rule("a")), []string{"a: is about to hold this node: the taint has not been added yet"}},
		"about to release":            {worker("w", says("a", True), heldBy("a", noderule.OriginCreated)), rules(rule("a")), []string{"a: is about to release this node: its requirements are met"}},
		"completed":                   {worker("w", completed("a")), rules(rule("a", bootstrapOnly)), []string{"a: has released this node permanently (bootstrap-only)"}},
		"about to complete":           {worker("w", says("a", True)), rules(rule("a", bootstrapOnly)), []string{"a: is about to record that it has released this node permanently (bootstrap-only)"}},
		"relabelled":                  {worker("w", labelled("other"), heldBy("a", noderule.OriginCreated)), rules(rule("a")), []string{"a: no longer selects this node; its taint is about to be removed"}},
		"deleted":                     {worker("w", heldBy("a", noderule.OriginCreated)), rules(rule("a", deleting)), []string{"a: is being deleted; its taint and annotations are about to be removed from this node"}},
		"previews a hold":             {worker("w"), rules(rule("a", dryRun)), []string{"a: is a dry run: it would hold this node"}},
		"previews none":               {worker("w", says("a", True)), rules(rule("a", dryRun)), []string{"a: is a dry run: it would not hold this node"}},
		"previews, and held before":   {worker("w", heldBy("a", noderule.OriginCreated)), rules(rule("a", dryRun)), []string{"a: is now a dry run and keeps its earlier hold on this node"}},
		"a rule of other nodes":       {worker("w", labelled("other")), rules(rule("a")), nil},
		"a rule that lost a conflict": {worker("w", says("a", True)), rules(rule("a"), rule("b", sameTaintAs("a"), younger)), []string{"b: selects this node but has no effect: rule \"a\" is older and manages the taint readiness.k8s.io/a:NoSchedule on nodes that this rule can select too, so this rule has no effect: use another taint or a selector that excludes its nodes, or delete one of the two rules", "a: does not hold this node: its requirements are met"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, chapter := range explanation(c.node, c.rules...).Chapters {
				got = append(got, chapter.Rule+": "+chapter.Text)
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Each case names words that the advice must have, in this order.
func TestAdvice(t *testing.T) {
	old := metav1.NewTime(noon.Add(-40 * time.Minute))
	for name, c := range map[string]struct {
		node  *corev1.Node
		rules []*v1alpha1.NodeReadinessRule
		want  []string
	}{
		"never reported": {worker("w", heldBy("net", noderule.OriginCreated)), rules(rule("net")),
			[]string{"example.com/net has not been reported", "60m", "tolerates the taint readiness.k8s.io/net:NoSchedule", "spec.nodeName=w"}},
		"reported False": {worker("w", says("net", False), heldBy("net", noderule.OriginCreated)), rules(rule("net")),
			[]string{"example.com/net is False for 10m (AgentSays so it is)", "Check that component", "spec.nodeName=w"}},
		"a reporter that went silent": {worker("w", says("net", False), heldBy("net", noderule.OriginCreated), func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = old }), rules(rule("net")),
			[]string{"The last heartbeat of example.com/net was 40m ago", "its reporter may not be running"}},
		"not applied":                {worker("w"), rules(rule("net")), []string{"Not applied to this node yet: rule net", "kubectl get pods,lease -n readygate-system"}},
		"refused":                    {worker("w"), rules(rule("net", refuses("w", "policy says no"))), []string{"rejects changes of this node for rule net; change the policy, the role or the rule: policy says no"}},
		"a preview that still holds": {worker("w", says("net", True), heldBy("net", noderule.OriginCreated)), rules(rule("net", dryRun)), []string{"Rule net is a dry run", "kubectl patch nrr net", "or delete it"}},
		"met, but silent":            {worker("w", says("net", True), func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = old }), rules(rule("net")), []string{"was 40m ago", "The last reported status still counts"}},
		"completed, and silent":      {worker("w", completed("net"), says("net", True), func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = old }), rules(rule("net", bootstrapOnly)), nil},
		"the manager waits":          {worker("w"), rules(rule("a", soleController(v1alpha1.ReasonWaitingForLease)), rule("b", younger, soleController(v1alpha1.ReasonWaitingForLease))), []string{"in namespace other\nexample.com/a has not been reported", "Not applied to this node yet: rule a, b"}},
		"two rules, one advice":      {worker("w"), rules(rule("a"), rule("b", younger)), []string{"Not applied to this node yet: rule a, b"}},
		"cordoned":                   {worker("w", cordoned), nil, []string{"kubectl uncordon w"}},
		"not Ready":                  {worker("w", func(n *corev1.Node) { n.Status.Conditions[0].Status = False }), nil, []string{"kubelet does not report", "kubectl describe node w"}},
		"taints of others":           {worker("w", tainted("node.cilium.io/agent-not-ready", corev1.TaintEffectNoSchedule)), nil, []string{"node.cilium.io/agent-not-ready:NoSchedule"}},
		"one of two would do":        {worker("w"), rules(rule("net", anyOf("example.com/a", "example.com/b"))), []string{"example.com/a", "example.com/b", "requires only one of these conditions"}},
		"all is well":                {worker("w", says("net", True)), rules(rule("net")), nil},
		"a preview asks nothing":     {worker("w"), rules(rule("net", dryRun)), nil},
		"a conflict":                 {worker("w", says("a", True)), rules(rule("a"), rule("b", sameTaintAs("a"), younger)), []string{"Rule b has no effect", `rule "a" is older`}},
		"a soft taint is no hold":    {worker("w", tainted("soft", corev1.TaintEffectPreferNoSchedule)), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			next := strings.Join(explanation(c.node, c.rules...).Next, "\n")
			rest := next
			for _, word := range c.want {
				_, after, found := strings.Cut(rest, word)
				if !found {
					t.Fatalf("%q is missing in %q", word, next)
				}
				rest = after
			}
			if c.want == nil && next != "" {
				t.Errorf("advice %q where none is needed", next)
			}
		})
	}
}

func TestConditionWriterIsReadFromManagedFields(t *testing.T) {
	fields := func(manager, conditionType string, at time.Time) metav1.ManagedFieldsEntry {
		when := metav1.NewTime(at)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(
			`{"f:status":{"f:conditions":{"k:{\"type\":\"` + conditionType + `\"}":{".":{},"f:status":{}}}}}`)}
	}
	n := worker("w", says("net", False), func(n *corev1.Node) {
		n.ManagedFields = []metav1.ManagedFieldsEntry{
			fields("another", "example.com/net", dawn), fields("readygate-reporter", "example.com/net", noon), fields("kubelet", "Ready", noon),
			{Manager: "broken", FieldsV1: metav1.NewFieldsV1(`{"f:status":7}`)}, {Manager: "empty"},
		}
	})
	if got := explanation(n, rule("net")).Chapters[0].Requirements[0].Writer; got != "readygate-reporter" {
		t.Errorf("the condition was written by %q", got)
	}
}

func TestEventsOfANode(t *testing.T) {
	event := func(reason string, at time.Time, change func(*corev1.Event)) corev1.Event {
		e := corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "w", UID: "uid-w"}, ReportingController: v1alpha1.Reporter,
			Reason: reason, Message: "it happened", EventTime: metav1.NewMicroTime(at), Type: corev1.EventTypeNormal,
		}
		change(&e)
		return e
	}
	same := func(*corev1.Event) {}
	got := view.NewBook(nil).Explanation(worker("w"), []corev1.Event{
		event(v1alpha1.EventTaintRemoved, noon, same),
		event(v1alpha1.EventTaintAdded, dawn, same),
		event("OfAnotherNode", noon, func(e *corev1.Event) { e.InvolvedObject.Name = "v" }),
		event("OfThisNodeBefore", noon, func(e *corev1.Event) { e.InvolvedObject.UID = "older" }),
		event("OfTheKubelet", noon, func(e *corev1.Event) { e.ReportingController = "kubelet" }),
	}, nil, noon).Events
	if len(got) != 2 || got[0].Reason != v1alpha1.EventTaintAdded || got[1].Reason != v1alpha1.EventTaintRemoved {
		t.Errorf("got %+v", got)
	}
}

func TestAge(t *testing.T) {
	for age, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 119 * time.Second: "119s", 2*time.Minute + 5*time.Second: "2m5s", 11 * time.Minute: "11m",
		3 * time.Hour: "3h", 50 * time.Hour: "2d2h",
	} {
		if got := view.Age(noon.Add(-age), noon); got != want {
			t.Errorf("age of %v is %q, want %q", age, got, want)
		}
	}
}
