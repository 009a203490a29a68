package admission_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// The world of the property tests is small on purpose: rules, records, taints and labels
// that meet by chance are where mistakes are.
var (
	ruleNames      = []string{"r0", "r1", "r2", "r3"}
	recordNames    = append([]string{"gone"}, ruleNames...)
	conditionTypes = []string{"NetworkReady", "StorageReady", "Ready"}
	allStatuses    = []corev1.ConditionStatus{True, False, Unknown}
	labelKeys      = []string{"role", "zone"}
	labelValues    = []v1alpha1.LabelValue{"", "a", "b"}

	managedTaints = []noderule.TaintID{
		{Key: "readiness.k8s.io/A", Effect: corev1.TaintEffectNoSchedule},
		{Key: "readiness.k8s.io/A", Effect: corev1.TaintEffectNoExecute},
		{Key: "readiness.k8s.io/B", Effect: corev1.TaintEffectNoSchedule},
		{Key: "startup-taint.cluster-autoscaler.kubernetes.io/C", Effect: corev1.TaintEffectPreferNoSchedule},
	}
	everyTaint = append([]noderule.TaintID{
		{Key: notReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: "example.com/gpu", Effect: corev1.TaintEffectNoExecute},
	}, managedTaints...)
)

// A rulebook is compiled by the API server's compiler, which takes time, and then asked about
// many nodes: forty of them find enough. The command line still has the last word.
func init() {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
}

// oneIn is true once in about n draws.
func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(0, n-1).Draw(t, label) == n-1 }

// genRules are up to four rules, most of them enforced.
func genRules(t *rapid.T) []*v1alpha1.NodeReadinessRule {
	var objs []*v1alpha1.NodeReadinessRule
	for _, name := range ruleNames[:rapid.IntRange(1, len(ruleNames)).Draw(t, "rules")] {
		objs = append(objs, genRule(t, name))
	}
	return objs
}

func genRule(t *rapid.T, name string) *v1alpha1.NodeReadinessRule {
	id := rapid.SampledFrom(managedTaints).Draw(t, "taint")
	options := []ruleOption{
		taintKey(id.Key), taintEffect(id.Effect), taintValue(rapid.SampledFrom([]string{"", "pending"}).Draw(t, "value")),
		genSelector(t), genRequirements(t), createdAt(dayOne.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour)),
	}
	rare := map[string]ruleOption{"dry run": dryRun, "deleting": deleting, "anyOf": anyOf, "invalid value": taintValue("not valid")}
	for _, what := range slices.Sorted(maps.Keys(rare)) {
		if oneIn(t, 8, what) {
			options = append(options, rare[what])
		}
	}
	if rapid.Bool().Draw(t, "bootstrap-only") {
		options = append(options, bootstrapOnly)
		if oneIn(t, 3, "each boot") {
			options = append(options, func(r *v1alpha1.NodeReadinessRule) { r.Spec.BootstrapScope = v1alpha1.BootstrapScopeBoot })
		}
	}
	if oneIn(t, 4, "settles") {
		options = append(options, func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = 60 })
	}
	return rule(name, options...)
}

// genSelector is mostly one label, so that nodes are selected often and rules are not all
// in conflict.
func genSelector(t *rapid.T) ruleOption {
	selector := v1alpha1.NodeSelector{MatchLabels: genMatchLabels(t)}
	if oneIn(t, 3, "expressions") || len(selector.MatchLabels) == 0 {
		selector.MatchExpressions = rapid.SliceOfN(rapid.Custom(genExpression), 1, 3).Draw(t, "expressions")
	}
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.NodeSelector = selector }
}

func genMatchLabels(t *rapid.T) map[string]v1alpha1.LabelValue {
	return rapid.MapOfN(rapid.SampledFrom(labelKeys), rapid.SampledFrom(labelValues), 0, 2).Draw(t, "match labels")
}

func genExpression(t *rapid.T) v1alpha1.NodeSelectorRequirement {
	key := rapid.SampledFrom(labelKeys).Draw(t, "key")
	operator := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")
	if operator == "Exists" || operator == "DoesNotExist" {
		return expression(key, operator)
	}
	return expression(key, operator, rapid.SliceOfNDistinct(rapid.SampledFrom(labelValues), 1, 3, rapid.ID).Draw(t, "values")...)
}

func genRequirements(t *rapid.T) ruleOption {
	types := rapid.SliceOfNDistinct(rapid.SampledFrom(conditionTypes), 1, 2, rapid.ID).Draw(t, "types")
	var requirements []v1alpha1.ConditionRequirement
	for _, conditionType := range types {
		q := requirement(conditionType, rapid.SampledFrom(allStatuses).Draw(t, "required"))
		if oneIn(t, 3, "has default") {
			q.DefaultStatus = rapid.SampledFrom(allStatuses).Draw(t, "default")
		}
		if oneIn(t, 4, "limits the age") {
			q.MaxAge = &metav1.Duration{Duration: time.Minute}
		}
		requirements = append(requirements, q)
	}
	return requires(requirements...)
}

// genNode is a node in any state: tainted, recorded and forged without rhyme or reason, with
// conditions twice, with a status or without, with lists and maps that are absent or empty.
func genNode(t *rapid.T) *corev1.Node {
	n := node(nodeCreatedAt(dayOne.Add(time.Duration(rapid.IntRange(10, 14).Draw(t, "created")) * time.Hour)))
	n.Labels, n.Spec.Taints, n.Annotations, n.Status.Conditions = genLabels(t), genTaints(t), genAnnotations(t), genConditions(t)
	n.Status.NodeInfo.BootID = rapid.SampledFrom([]string{"", "boot-1", "boot-2"}).Draw(t, "boot")
	return n
}

func genLabels(t *rapid.T) map[string]string {
	return rapid.OneOf(
		rapid.Just[map[string]string](nil),
		rapid.MapOf(rapid.SampledFrom(labelKeys), rapid.SampledFrom([]string{"", "a", "b", "unnamed"})),
		rapid.MapOf(rapid.SampledFrom(labelKeys), rapid.SampledFrom([]string{"a", "b"})),
	).Draw(t, "labels")
}

func genTaints(t *rapid.T) []corev1.Taint {
	if oneIn(t, 3, "no taints") {
		return nil
	}
	taints := []corev1.Taint{}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(everyTaint), 0, 3, rapid.ID).Draw(t, "taints") {
		taints = append(taints, corev1.Taint{Key: id.Key, Effect: id.Effect, Value: rapid.SampledFrom([]string{"", "other"}).Draw(t, "value")})
	}
	return taints
}

func genConditions(t *rapid.T) []corev1.NodeCondition {
	if oneIn(t, 5, "no conditions") {
		return nil
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type:              corev1.NodeConditionType(rapid.SampledFrom(append(conditionTypes, "")).Draw(t, "type")),
			Status:            rapid.SampledFrom(append(allStatuses, "", "odd")).Draw(t, "status"),
			LastHeartbeatTime: metav1.NewTime(rapid.SampledFrom([]time.Time{{}, dayOne}).Draw(t, "heartbeat")),
		}
	}), 0, 4).Draw(t, "conditions")
}

// genAnnotations are records, completions and foreign ones; their values may be forged.
func genAnnotations(t *rapid.T) map[string]string {
	if oneIn(t, 3, "no annotations") {
		return nil
	}
	annotations := map[string]string{}
	for range rapid.IntRange(0, 3).Draw(t, "annotations") {
		name := rapid.SampledFrom(recordNames).Draw(t, "of rule")
		taint := rapid.SampledFrom(everyTaint).Draw(t, "recorded taint")
		key := rapid.SampledFrom([]string{
			holdKey(name), completedKey(name), v1alpha1.CompletedPrefix + name, v1alpha1.HoldPrefix, "example.com/" + name, "",
		}).Draw(t, "annotation key")
		annotations[key] = rapid.SampledFrom([]string{
			fmt.Sprintf(`{"rule":%q,"taint":%q,"origin":"added"}`, name, taint), fmt.Sprintf(`{"rule-name":%q}`, name), fmt.Sprintf(`{"boot-id":"boot-1","rule-name":%q}`, name), "", "{",
		}).Draw(t, "annotation value")
	}
	return annotations
}

// genChange is the node some writes later, as a request shows it. Mostly its labels change.
func genChange(t *rapid.T, before *corev1.Node) *corev1.Node {
	after := before.DeepCopy()
	if !oneIn(t, 6, "same labels") {
		after.Labels = genLabels(t)
	}
	if oneIn(t, 3, "taints change") {
		after.Spec.Taints = genTaints(t)
	}
	if oneIn(t, 3, "annotations change") {
		after.Annotations = genAnnotations(t)
	}
	if oneIn(t, 3, "conditions change") {
		after.Status.Conditions = genConditions(t)
	}
	return after
}
