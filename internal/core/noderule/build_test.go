package noderule_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

const (
	True    = corev1.ConditionTrue
	False   = corev1.ConditionFalse
	Unknown = corev1.ConditionUnknown

	networkTaint = "readiness.k8s.io/NetworkReady"
	notReady     = "node.kubernetes.io/not-ready"
)

// Rules are created, and nodes join, on dayOne unless a case says otherwise; plans are made at noon.
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

func bootstrapOnly(r *v1alpha1.NodeReadinessRule) {
	r.Spec.EnforcementMode = v1alpha1.EnforcementModeBootstrapOnly
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

func younger(r *v1alpha1.NodeReadinessRule)  { createdAt(dayOne.Add(time.Hour))(r) }
func youngest(r *v1alpha1.NodeReadinessRule) { createdAt(dayOne.Add(2 * time.Hour))(r) }

func takenOverAt(t time.Time) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Status.TakenOverAt = &metav1.Time{Time: t} }
}

func previewsSince(t time.Time) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Status.DryRunSince = &metav1.Time{Time: t} }
}

func rules(objs ...*v1alpha1.NodeReadinessRule) []*v1alpha1.NodeReadinessRule { return objs }

type nodeOption func(*noderule.Node)

// node is a node without labels, conditions, taints or annotations.
func node(options ...nodeOption) *noderule.Node {
	n := &noderule.Node{Name: "n1", UID: "node-1", Created: dayOne, Labels: labels.Set{}, Annotations: map[string]string{}}
	for _, option := range options {
		option(n)
	}
	return n
}

// worker is a node that the rules of most cases select.
func worker(options ...nodeOption) *noderule.Node {
	return node(append([]nodeOption{label("role", "worker")}, options...)...)
}

func named(name string) nodeOption { return func(n *noderule.Node) { n.Name = name } }

func nodeCreatedAt(t time.Time) nodeOption { return func(n *noderule.Node) { n.Created = t } }

func label(key, value string) nodeOption {
	return func(n *noderule.Node) { n.Labels[key] = value }
}

func reports(conditionType string, status corev1.ConditionStatus) nodeOption {
	return func(n *noderule.Node) {
		n.Conditions = append(n.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(conditionType), Status: status})
	}
}

// tainted puts taints on the node, each written as key:effect or key=value:effect.
func tainted(taints ...string) nodeOption {
	return func(n *noderule.Node) {
		for _, s := range taints {
			left, effect, _ := strings.Cut(s, ":")
			key, value, _ := strings.Cut(left, "=")
			n.Taints = append(n.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
}

func annotated(key, value string) nodeOption {
	return func(n *noderule.Node) { n.Annotations[key] = value }
}

// owned gives the node the record that a rule holds its taint there. A rule of this name
// need not exist.
func owned(name, taint string) nodeOption {
	value := fmt.Sprintf(`{"rule":%q,"taint":%q,"origin":"added","since":"2026-03-01T01:00:00Z"}`, name, taint)
	return annotated(holdKey(name), value)
}

// listedOn is a list of rule taints that has every pair that a record on the node names.
func listedOn(n *noderule.Node) noderule.RuleTaints {
	listed := noderule.RuleTaints{}
	for key, value := range n.Annotations {
		if uid, ok := strings.CutPrefix(key, v1alpha1.HoldPrefix); ok {
			if taint, ok := noderule.RecordTaint(value); ok {
				listed[types.UID(uid)] = taint
			}
		}
	}
	return listed
}

func completed(name string) nodeOption {
	return annotated(completedKey(name), fmt.Sprintf(`{"rule-name":%q}`, name))
}

func holdKey(name string) string      { return v1alpha1.HoldPrefix + string(uidOf(name)) }
func completedKey(name string) string { return v1alpha1.CompletedPrefix + string(uidOf(name)) }

// verdictOf is the only rule's answer.
func verdictOf(r *v1alpha1.NodeReadinessRule, n *noderule.Node) noderule.Verdict {
	return noderule.Evaluate(compiled(r), n, noon)
}

// compiled is the rule as it stands alone.
func compiled(r *v1alpha1.NodeReadinessRule) *noderule.Rule {
	return noderule.NewRulebook(rules(r)).Rule(r.UID)
}

func taintStrings(taints []corev1.Taint) []string {
	written := make([]string, len(taints))
	for i := range taints {
		written[i] = taints[i].ToString()
	}
	return written
}

// notes are the node's annotations in the words of a case: "network holds (added)",
// "network completed", or the key itself if it is not a record of one of the names.
func notes(n *noderule.Node, names ...string) []string {
	words := map[string]string{}
	for _, name := range names {
		words[completedKey(name)] = name + " completed"
		var record struct{ Origin string }
		if json.Unmarshal([]byte(n.Annotations[holdKey(name)]), &record) == nil {
			words[holdKey(name)] = fmt.Sprintf("%s holds (%s)", name, record.Origin)
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

func namesOf(objs []*v1alpha1.NodeReadinessRule) []string {
	var names []string
	for _, obj := range objs {
		names = append(names, obj.Name)
	}
	return names
}

// wantEqual compares lists, nil and empty alike.
func wantEqual(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
