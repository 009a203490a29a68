package admission_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// newNodeCase is a node and what becomes of it as it is created.
type newNodeCase struct {
	rules  []*v1alpha1.NodeReadinessRule // network alone if there are none
	node   *corev1.Node
	groups []string // of the user who creates it
	taints []string
	notes  []string
}

func (c newNodeCase) run(t *testing.T) {
	if c.rules == nil {
		c.rules = rules(rule("network"))
	}
	c.node.CreationTimestamp.Reset() // the API server sets it later
	m := newMutator(t, admission.TaintNewNodesSpec(taintNewNodes(c.rules...)))
	got := m.admit(t, created(c.node, c.groups...))
	wantEqual(t, "taints", taintStrings(got.Spec.Taints), c.taints)
	wantEqual(t, "annotations", notes(got, c.rules), c.notes)
	if again := m.admit(t, created(got.DeepCopy(), c.groups...)); !equality.Semantic.DeepEqual(again, got) {
		t.Errorf("the policy changes its own work:\n%+v\n%+v", got, again)
	}
}

func TestNewNodeHasTheTaintsAndRecordsOfItsRules(t *testing.T) {
	network := rule("network")
	storage := rule("storage", taintKey("readiness.k8s.io/StorageReady"), taintValue(""), requires(requirement("StorageReady", True)))
	evicts := rule("network", taintEffect(corev1.TaintEffectNoExecute))
	cases := map[string]newNodeCase{
		"a selected node is held, and the record says by whom": {
			node: worker(), taints: []string{hold}, notes: []string{"network holds (created)"},
		},
		"a node without labels is left alone":         {node: node()},
		"a node with other labels is left alone":      {node: node(label("role", "gateway"))},
		"a node with an empty label is left alone":    {node: node(label("role", ""))},
		"a kubelet's own registration is held":        {node: worker(), groups: []string{kubelets}, taints: []string{hold}, notes: []string{"network holds (created)"}},
		"NoExecute holds at creation too":             {rules: rules(evicts), node: worker(), taints: []string{networkTaint + "=pending:NoExecute"}, notes: []string{"network holds (created)"}},
		"other taints stay, and stay first":           {node: worker(tainted(notReady + ":NoSchedule")), taints: []string{notReady + ":NoSchedule", hold}, notes: []string{"network holds (created)"}},
		"other annotations stay":                      {node: worker(annotated("example.com/a", "b")), taints: []string{hold}, notes: []string{"example.com/a", "network holds (created)"}},
		"the taint with another effect is another":    {node: worker(tainted(networkTaint + ":NoExecute")), taints: []string{networkTaint + ":NoExecute", hold}, notes: []string{"network holds (created)"}},
		"a taint that the kubelet brings is left":     {node: worker(tainted(hold)), taints: []string{hold}},
		"also with another value":                     {node: worker(tainted(networkTaint + "=other:NoSchedule")), taints: []string{networkTaint + "=other:NoSchedule"}},
		"and the manager adopts it, so: no record":    {node: worker(tainted(hold), annotated("a", "b")), taints: []string{hold}, notes: []string{"a"}},
		"an empty list of taints is filled":           {node: worker(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{} }), taints: []string{hold}, notes: []string{"network holds (created)"}},
		"empty annotations are filled":                {node: worker(func(n *corev1.Node) { n.Annotations = map[string]string{} }), taints: []string{hold}, notes: []string{"network holds (created)"}},
		"a record that the kubelet brings is renewed": {node: worker(annotated(holdKey("network"), "{")), taints: []string{hold}, notes: []string{"network holds (created)"}},
		"two rules hold at once, oldest first": {
			rules: rules(rule("storage", younger, taintKey("readiness.k8s.io/StorageReady"), taintValue("")), network), node: worker(),
			taints: []string{hold, "readiness.k8s.io/StorageReady:NoSchedule"}, notes: []string{"network holds (created)", "storage holds (created)"},
		},
		"each rule looks at its own conditions": {
			rules: rules(network, storage), node: worker(reports("NetworkReady", True)),
			taints: []string{"readiness.k8s.io/StorageReady:NoSchedule"}, notes: []string{"storage holds (created)"},
		},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

func TestANodeThatMeetsTheRequirementsIsNotHeld(t *testing.T) {
	either := rule("network", anyOf, requires(requirement("NetworkReady", True), requirement("StorageReady", False)))
	byDefault := rule("network", requires(withDefault(requirement("Problem", False), False)))
	silent := rule("network", requires(requirement("Problem", Unknown)))
	held, created := []string{hold}, []string{"network holds (created)"}
	cases := map[string]newNodeCase{
		"met by the status that it is created with":      {node: worker(reports("NetworkReady", True))},
		"not met by that status":                         {node: worker(reports("NetworkReady", False)), taints: held, notes: created},
		"a condition without a status is Unknown":        {node: worker(reports("NetworkReady", "")), taints: held, notes: created},
		"which may be what is required":                  {rules: rules(silent), node: worker(reports("Problem", ""))},
		"as is a condition that is absent":               {rules: rules(silent), node: worker()},
		"met by default":                                 {rules: rules(byDefault), node: worker()},
		"a report overrules the default":                 {rules: rules(byDefault), node: worker(reports("Problem", True)), taints: held, notes: created},
		"also one without a status":                      {rules: rules(byDefault), node: worker(reports("Problem", "")), taints: held, notes: created},
		"of two conditions of a type the first counts":   {node: worker(reports("NetworkReady", False), reports("NetworkReady", True)), taints: held, notes: created},
		"anyOf needs one":                                {rules: rules(either), node: worker(reports("StorageReady", False))},
		"anyOf with none":                                {rules: rules(either), node: worker(reports("StorageReady", True)), taints: held, notes: created},
		"allOf needs all":                                {rules: rules(rule("network", requires(requirement("A", True), requirement("B", True)))), node: worker(reports("A", True)), taints: held, notes: created},
		"a completion of a continuous rule is no reason": {node: worker(completed("network")), taints: held, notes: []string{"network completed", "network holds (created)"}},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

// A node that joins can bring along what it carried before it was deleted.
func TestCompletionRecordOnANewNode(t *testing.T) {
	once := rule("network", bootstrapOnly)
	takenOver := rule("network", bootstrapOnly, takenOverAt(noon.Add(-time.Hour)))
	older := v1alpha1.CompletedPrefix + "network"
	cases := map[string]newNodeCase{
		"counts":                                 {rules: rules(once), node: worker(completed("network")), notes: []string{"network completed"}},
		"of another rule does not":               {rules: rules(once), node: worker(completed("storage")), taints: []string{hold}, notes: []string{"network holds (created)", completedKey("storage")}},
		"of the older form does not":             {rules: rules(takenOver), node: worker(annotated(older, "")), taints: []string{hold}, notes: []string{"network holds (created)", older}},
		"which is nothing to one of the new":     {rules: rules(takenOver), node: worker(completed("network")), notes: []string{"network completed"}},
		"what looks like another's is no reason": {rules: rules(once), node: worker(annotated(older+"s", "")), taints: []string{hold}, notes: []string{"network holds (created)", older + "s"}},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

// When a bootstrap-only rule was taken over is part of its text: it is written once.
func TestBootstrapOnlyRuleIsInThePolicyOnceTakenOver(t *testing.T) {
	once := rule("network", bootstrapOnly)
	if taken := taintNewNodes(once); !taken.Covers(once.UID) {
		t.Error("a rule that was taken over is not covered")
	}
	once.Status.TakenOverAt = nil
	if b := taintNewNodes(once, rule("storage", taintKey("readiness.k8s.io/StorageReady"))); b.Covers(once.UID) || b.LeavesOut(once.UID) || len(b.Texts()) != 1 {
		t.Errorf("compiled to %v", b.Texts())
	}
}

func TestTheRecordIsAFixedText(t *testing.T) {
	m := newMutator(t, admission.TaintNewNodesSpec(taintNewNodes(rule("network"))))
	for origin, request := range map[string]request{
		"created":  created(worker()),
		"labelled": updated(node(), worker()),
	} {
		want := `{"rule":"network","taint":"readiness.k8s.io/NetworkReady:NoSchedule","origin":"` + origin + `"}`
		if got := m.admit(t, request).Annotations[holdKey("network")]; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOnlyEnforcedRulesAreInThePolicy(t *testing.T) {
	network := rule("network")
	other := func(options ...ruleOption) *v1alpha1.NodeReadinessRule {
		return rule("other", append([]ruleOption{taintKey("readiness.k8s.io/Other")}, options...)...)
	}
	cases := map[string]struct {
		rule    *v1alpha1.NodeReadinessRule
		covered bool
	}{
		"a rule that is enforced":         {rule: other(), covered: true},
		"a rule that only previews":       {rule: other(dryRun)},
		"a rule that is being deleted":    {rule: other(deleting)},
		"a rule that is not valid":        {rule: other(taintValue("not valid"))},
		"a rule without a selector":       {rule: other(selectsBy())},
		"a rule in conflict":              {rule: other(younger, taintKey(networkTaint))},
		"a rule with a taint of others":   {rule: other(taintKey(notReady))},
		"a rule that selects other nodes": {rule: other(younger, taintKey(networkTaint), selects("role", "gateway")), covered: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := taintNewNodes(network, c.rule)
			if got := b.Covers(uidOf("other")); got != c.covered {
				t.Errorf("covered: got %t, want %t", got, c.covered)
			}
			if !b.Covers(uidOf("network")) {
				t.Error("the other rule keeps this one out")
			}
			if b.LeavesOut(uidOf("other")) {
				t.Error("it is reported as left out")
			}
			named := slices.ContainsFunc(admission.TaintNewNodesSpec(b).Variables, func(v admissionv1.Variable) bool { return strings.Contains(v.Expression, string(uidOf("other"))) })
			if named != c.covered {
				t.Errorf("named in the text: got %t, want %t", named, c.covered)
			}
		})
	}
}

func TestAPolicyWithoutRulesDoesNothing(t *testing.T) {
	m := newMutator(t, admission.TaintNewNodesPolicy().Spec)
	for _, r := range []request{created(worker()), updated(node(), worker()), created(node())} {
		want := r.object.DeepCopyObject()
		if got := m.admit(t, r); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("changed %+v\nto %+v", want, got)
		}
	}
}
