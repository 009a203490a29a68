package admission_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

const (
	True    = corev1.ConditionTrue
	False   = corev1.ConditionFalse
	Unknown = corev1.ConditionUnknown

	networkTaint = "readiness.k8s.io/NetworkReady"
	hold         = networkTaint + "=pending:NoSchedule"
	notReady     = "node.kubernetes.io/not-ready"

	kubelets = "system:nodes" // the group of kubelets
)

// Rules are created, and nodes that exist have joined, on dayOne unless a case says
// otherwise; nodes are created and changed at noon.
var (
	dayOne = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	noon   = dayOne.Add(12 * time.Hour)
)

// uidOf gives every rule name a UID of its own, of the form that API servers use.
func uidOf(name string) types.UID {
	h := fnv.New64a()
	h.Write([]byte(name))
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", h.Sum64()>>32, h.Sum64()&0xffffffff))
}

type ruleOption func(*v1alpha1.NodeReadinessRule)

// rule is a continuous rule that holds workers until NetworkReady is True.
func rule(name string, options ...ruleOption) *v1alpha1.NodeReadinessRule {
	r := &v1alpha1.NodeReadinessRule{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeReadinessRule"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uidOf(name), Generation: 1, CreationTimestamp: metav1.NewTime(dayOne)},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: "NetworkReady", RequiredStatus: True}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Taint:           v1alpha1.Taint{Key: networkTaint, Value: "pending", Effect: corev1.TaintEffectNoSchedule},
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"role": "worker"}},
		},
	}
	for _, option := range options {
		option(r)
	}
	return r
}

// bootstrapOnly rules are taken over at noon, if at no other time.
func bootstrapOnly(r *v1alpha1.NodeReadinessRule) {
	r.Spec.EnforcementMode = v1alpha1.EnforcementModeBootstrapOnly
	if r.Status.TakenOverAt == nil {
		takenOverAt(noon)(r)
	}
}

func anyOf(r *v1alpha1.NodeReadinessRule)  { r.Spec.ConditionPolicy = v1alpha1.ConditionPolicyAnyOf }
func dryRun(r *v1alpha1.NodeReadinessRule) { r.Spec.DryRun = true }

func deleting(r *v1alpha1.NodeReadinessRule) {
	r.DeletionTimestamp = &metav1.Time{Time: noon}
}

func requires(requirements ...v1alpha1.ConditionRequirement) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Conditions = requirements }
}

func requirement(conditionType string, required corev1.ConditionStatus) v1alpha1.ConditionRequirement {
	return v1alpha1.ConditionRequirement{Type: conditionType, RequiredStatus: required}
}

func withDefault(q v1alpha1.ConditionRequirement, status corev1.ConditionStatus) v1alpha1.ConditionRequirement {
	q.DefaultStatus = status
	return q
}

func taintKey(key string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Key = key }
}

func taintValue(value string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Value = value }
}

func taintEffect(effect corev1.TaintEffect) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = effect }
}

func selects(key, value string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.NodeSelector = v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)}}
	}
}

func selectsBy(expressions ...v1alpha1.NodeSelectorRequirement) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.NodeSelector = v1alpha1.NodeSelector{MatchExpressions: expressions}
	}
}

func expression(key, operator string, values ...v1alpha1.LabelValue) v1alpha1.NodeSelectorRequirement {
	return v1alpha1.NodeSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: values}
}

func createdAt(t time.Time) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.CreationTimestamp = metav1.NewTime(t) }
}

func younger(r *v1alpha1.NodeReadinessRule) { createdAt(dayOne.Add(time.Hour))(r) }

func takenOverAt(t time.Time) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Status.TakenOverAt = &metav1.Time{Time: t} }
}

func rules(objs ...*v1alpha1.NodeReadinessRule) []*v1alpha1.NodeReadinessRule { return objs }

// taintNewNodes is what the rules make of the policy.
func taintNewNodes(objs ...*v1alpha1.NodeReadinessRule) admission.Compiled {
	return admission.CompileTaintNewNodes(noderule.NewRulebook(objs).Rules())
}

type nodeOption func(*corev1.Node)

// node is a node without labels, conditions, taints or annotations.
func node(options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-1", CreationTimestamp: metav1.NewTime(dayOne)}}
	for _, option := range options {
		option(n)
	}
	return n
}

// worker is a node that the rules of most cases select.
func worker(options ...nodeOption) *corev1.Node {
	return node(append([]nodeOption{label("role", "worker")}, options...)...)
}

func nodeCreatedAt(t time.Time) nodeOption {
	return func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(t) }
}

func label(key, value string) nodeOption {
	return func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, key, value) }
}

func unlabelled(key string) nodeOption { return func(n *corev1.Node) { delete(n.Labels, key) } }

func reports(conditionType string, status corev1.ConditionStatus) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(conditionType), Status: status})
	}
}

// tainted puts taints on the node, each written as key:effect or key=value:effect.
func tainted(taints ...string) nodeOption {
	return func(n *corev1.Node) {
		for _, s := range taints {
			left, effect, _ := strings.Cut(s, ":")
			key, value, _ := strings.Cut(left, "=")
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
}

func annotated(key, value string) nodeOption {
	return func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, key, value) }
}

func completed(name string) nodeOption {
	return annotated(completedKey(name), fmt.Sprintf(`{"rule-name":%q}`, name))
}

func holdKey(name string) string      { return v1alpha1.HoldPrefix + string(uidOf(name)) }
func completedKey(name string) string { return v1alpha1.CompletedPrefix + string(uidOf(name)) }

func taintStrings(taints []corev1.Taint) []string {
	written := make([]string, len(taints))
	for i := range taints {
		written[i] = taints[i].ToString()
	}
	return written
}

// notes are the node's annotations in the words of a case: "network holds (created)",
// "network completed", or the key itself if it is not a record of one of the rules.
func notes(n *corev1.Node, objs []*v1alpha1.NodeReadinessRule) []string {
	words := map[string]string{}
	for _, obj := range objs {
		words[completedKey(obj.Name)] = obj.Name + " completed"
		var record struct{ Origin string }
		if json.Unmarshal([]byte(n.Annotations[holdKey(obj.Name)]), &record) == nil {
			words[holdKey(obj.Name)] = fmt.Sprintf("%s holds (%s)", obj.Name, record.Origin)
		}
	}
	var written []string
	for key := range maps.Keys(n.Annotations) {
		if word, ok := words[key]; ok {
			key = word
		}
		written = append(written, key)
	}
	slices.Sort(written)
	return written
}

// wantEqual compares lists, nil and empty alike.
func wantEqual(t rapid.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
