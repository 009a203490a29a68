package admission_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// changeCase is a node, a request that changes it, and what the policy adds to the request.
type changeCase struct {
	rules  []*v1alpha1.NodeReadinessRule // network alone if there are none
	old    *corev1.Node
	change []nodeOption
	by     string   // user of the request, if it matters
	groups []string // of the user
	held   []string // names of the rules whose taint and record are put on
}

func (c changeCase) run(t *testing.T) {
	if c.rules == nil {
		c.rules = rules(rule("network"))
	}
	want := c.old.DeepCopy()
	for _, change := range c.change {
		change(want)
	}
	if c.by == "" {
		c.by = "alice"
	}
	m := newMutator(t, admission.TaintNewNodesSpec(taintNewNodes(c.rules...)))
	got := m.admit(t, updated(c.old, want.DeepCopy(), c.groups...).by(c.by))
	if again := m.admit(t, updated(c.old, got.DeepCopy(), c.groups...).by(c.by)); !equality.Semantic.DeepEqual(again, got) {
		t.Errorf("the policy changes its own work:\n%+v\n%+v", got, again)
	}
	for _, name := range c.held {
		holdAs(want, ruleNamed(c.rules, name), "labelled")
	}
	wantEqual(t, "taints", taintStrings(got.Spec.Taints), taintStrings(want.Spec.Taints))
	wantEqual(t, "annotations", notes(got, c.rules), notes(want, c.rules))
}

func ruleNamed(objs []*v1alpha1.NodeReadinessRule, name string) *v1alpha1.NodeReadinessRule {
	for _, obj := range objs {
		if obj.Name == name {
			return obj
		}
	}
	return nil
}

// holdAs puts on the node what the policy puts on it for the rule.
func holdAs(n *corev1.Node, r *v1alpha1.NodeReadinessRule, origin string) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: r.Spec.Taint.Key, Value: r.Spec.Taint.Value, Effect: r.Spec.Taint.Effect})
	annotated(holdKey(r.Name), `{"origin":"`+origin+`"}`)(n)
}

func relabelled(options ...nodeOption) []nodeOption {
	return append([]nodeOption{label("role", "worker")}, options...)
}

func without(taint string) nodeOption {
	return func(n *corev1.Node) {
		var kept []corev1.Taint
		for _, t := range n.Spec.Taints {
			if t.ToString() != taint {
				kept = append(kept, t)
			}
		}
		n.Spec.Taints = kept
	}
}

func TestTheRequestThatMakesARuleSelectANodeHoldsIt(t *testing.T) {
	linux := rule("linux", taintKey("readiness.k8s.io/Linux"), selects("os", "linux"))
	excludes := rule("network", selectsBy(expression("excluded", "DoesNotExist"), expression("role", "In", "worker")))
	evicts := rule("network", taintEffect(corev1.TaintEffectNoExecute))
	network := []string{"network"}
	cases := map[string]changeCase{
		"a label is set":                           {old: node(), change: relabelled(), held: network},
		"a label gets another value":               {old: node(label("role", "gateway")), change: relabelled(), held: network},
		"a label that kept the rule away goes":     {rules: rules(excludes), old: worker(label("excluded", "yes")), change: []nodeOption{unlabelled("excluded")}, held: network},
		"taints and annotations stay":              {old: node(tainted(notReady+":NoSchedule"), annotated("a", "b")), change: relabelled(), held: network},
		"the taint is put on in the same request":  {old: node(), change: relabelled(tainted(hold))},
		"the taint was there":                      {old: node(tainted(networkTaint + "=other:NoSchedule")), change: relabelled()},
		"PreferNoSchedule":                         {rules: rules(rule("network", taintEffect(corev1.TaintEffectPreferNoSchedule))), old: node(), change: relabelled(), held: network},
		"NoExecute would evict: the manager looks": {rules: rules(evicts), old: node(), change: relabelled()},
		"only rules that did not select it before": {rules: rules(rule("network"), linux), old: node(label("os", "linux")), change: relabelled(), held: network},
		"two rules at once":                        {rules: rules(rule("network"), linux), old: node(), change: relabelled(label("os", "linux")), held: []string{"network", "linux"}},
		"a kubelet labels its own node":            {old: node(), change: relabelled(), groups: []string{"system:authenticated", kubelets}},
		"the manager, which changes no labels":     {old: node(), change: relabelled(), by: admission.ManagerUser},
		"a controller of the cloud does":           {old: node(), change: relabelled(), groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}, held: network},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

func TestOtherChangesOfANodeAreLeftAlone(t *testing.T) {
	held := func() *corev1.Node {
		n := worker()
		holdAs(n, rule("network"), "created")
		return n
	}
	record := func(n *corev1.Node) { delete(n.Annotations, holdKey("network")) }
	cases := map[string]changeCase{
		"nothing changes":                    {old: worker()},
		"another label changes":              {old: worker(), change: []nodeOption{label("a", "b")}},
		"the rule's label goes":              {old: held(), change: []nodeOption{unlabelled("role")}},
		"all labels go":                      {old: held(), change: []nodeOption{func(n *corev1.Node) { n.Labels = nil }}},
		"the manager releases":               {old: held(), change: []nodeOption{without(hold), record}},
		"a user removes the taint":           {old: held(), change: []nodeOption{without(hold)}},
		"a user removes it and adds a label": {old: held(), change: []nodeOption{without(hold), label("a", "b")}},
		"a taint is added":                   {old: worker(), change: []nodeOption{tainted("example.com/gpu:NoSchedule")}},
		"an annotation is added":             {old: worker(), change: []nodeOption{annotated("a", "b")}},
		"the label moves to another value":   {old: held(), change: []nodeOption{label("role", "gateway")}},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

// The API server drops the status in a request, after admission has evaluated it.
func TestChangeIsEvaluatedWithTheStoredStatusOfTheNode(t *testing.T) {
	network := []string{"network"}
	silent := rule("network", requires(requirement("Problem", Unknown)))
	forget := func(n *corev1.Node) { n.Status.Conditions = nil }
	cases := map[string]changeCase{
		"met":                              {old: node(reports("NetworkReady", True)), change: relabelled()},
		"met, and the request says no":     {old: node(reports("NetworkReady", True)), change: relabelled(forget, reports("NetworkReady", False))},
		"met, and the request has nothing": {old: node(reports("NetworkReady", True)), change: relabelled(forget)},
		"met only in the request":          {old: node(), change: relabelled(reports("NetworkReady", True)), held: network},
		"not met":                          {old: node(reports("NetworkReady", False)), change: relabelled(), held: network},
		"met by silence":                   {rules: rules(silent), old: node(), change: relabelled(reports("Problem", True))},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

func TestNodeWithACompletionRecordIsNotHeldAgain(t *testing.T) {
	once, always := rule("network", bootstrapOnly), rule("network")
	takenOver := rule("network", bootstrapOnly, takenOverAt(noon))
	older := annotated(v1alpha1.CompletedPrefix+"network", "")
	network := []string{"network"}
	cases := map[string]changeCase{
		"completed":                               {rules: rules(once), old: node(completed("network")), change: relabelled()},
		"completed in the same request":           {rules: rules(once), old: node(), change: relabelled(completed("network"))},
		"its completion goes in the same request": {rules: rules(once), old: node(completed("network")), change: relabelled(func(n *corev1.Node) { n.Annotations = nil }), held: network},
		"completed, and the rule is continuous":   {rules: rules(always), old: node(completed("network")), change: relabelled(), held: network},
		"the older form":                          {rules: rules(once), old: node(older), change: relabelled()},
		"on a node from before the take-over":     {rules: rules(takenOver), old: node(older, nodeCreatedAt(noon.Add(-time.Second))), change: relabelled()},
		"on one that joined as it happened":       {rules: rules(takenOver), old: node(older, nodeCreatedAt(noon)), change: relabelled(), held: network},
		"on a younger one":                        {rules: rules(takenOver), old: node(older, nodeCreatedAt(noon.Add(time.Hour))), change: relabelled(), held: network},
		"where a new one is there too":            {rules: rules(takenOver), old: node(older, completed("network"), nodeCreatedAt(noon.Add(time.Hour))), change: relabelled()},
		"with another zone":                       {rules: rules(rule("network", bootstrapOnly, takenOverAt(noon.In(time.FixedZone("", 3600))))), old: node(older, nodeCreatedAt(noon)), change: relabelled(), held: network},
		"on one that has no time, as none has":    {rules: rules(takenOver), old: node(older, nodeCreatedAt(time.Time{})), change: relabelled(), held: network},
		"a request that claims to be older":       {rules: rules(takenOver), old: node(older, nodeCreatedAt(noon)), change: relabelled(nodeCreatedAt(dayOne)), held: network},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}
