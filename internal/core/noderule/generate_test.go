package noderule_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// The world of the property tests is small on purpose: rules, records, taints and labels
// that meet by chance are where mistakes are.
var (
	ruleNames      = []string{"r0", "r1", "r2", "r3"}
	recordNames    = append([]string{"gone", "forgotten"}, ruleNames...)
	conditionTypes = []string{"NetworkReady", "StorageReady", "Ready"}
	allStatuses    = []corev1.ConditionStatus{True, False, Unknown}

	managedTaints = []noderule.TaintID{
		{Key: "readiness.k8s.io/A", Effect: corev1.TaintEffectNoSchedule},
		{Key: "readiness.k8s.io/A", Effect: corev1.TaintEffectNoExecute},
		{Key: "readiness.k8s.io/B", Effect: corev1.TaintEffectNoSchedule},
		{Key: "startup-taint.cluster-autoscaler.kubernetes.io/C", Effect: corev1.TaintEffectNoSchedule},
	}
	foreignTaints = []noderule.TaintID{
		{Key: "my.readiness.k8s.io/A", Effect: corev1.TaintEffectNoSchedule},
		{Key: notReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: notReady, Effect: corev1.TaintEffectNoExecute},
		{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule},
	}
	everyTaint = slices.Concat(managedTaints, foreignTaints)
)

// A hundred checks, the usual number, find too little in this world; two thousand take well
// under a second each. The command line still has the last word: -rapid.checks=100000.
func init() {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
}

// oneIn is true once in about n draws.
func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(0, n-1).Draw(t, label) == n-1 }

// genRules are up to four rules, most of them enforced, on taints of the given kinds.
func genRules(t *rapid.T, taints []noderule.TaintID) []*v1alpha1.NodeReadinessRule {
	var objs []*v1alpha1.NodeReadinessRule
	for _, name := range ruleNames[:rapid.IntRange(0, len(ruleNames)).Draw(t, "rules")] {
		objs = append(objs, genRule(t, name, taints))
	}
	return objs
}

func genRule(t *rapid.T, name string, taints []noderule.TaintID) *v1alpha1.NodeReadinessRule {
	id := rapid.SampledFrom(taints).Draw(t, "taint")
	options := []ruleOption{
		taintKey(id.Key), taintEffect(id.Effect), genSelector(t), genRequirements(t),
		createdAt(dayOne.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour)),
	}
	rare := map[string]ruleOption{
		"dry run": dryRun, "deleting": deleting, "anyOf": anyOf,
		"invalid value": taintValue("not valid"), "invalid selector": selectsBy(),
	}
	for _, what := range slices.Sorted(maps.Keys(rare)) {
		if oneIn(t, 6, what) {
			options = append(options, rare[what])
		}
	}
	if rapid.Bool().Draw(t, "bootstrap-only") {
		options = append(options, bootstrapOnly)
	}
	if rapid.Bool().Draw(t, "taken over") {
		options = append(options, takenOverAt(noon))
	}
	return rule(name, options...)
}

// genSelector is mostly one label, so that nodes are selected often and rules are not
// all in conflict.
func genSelector(t *rapid.T) ruleOption {
	if oneIn(t, 3, "expressions") {
		return selectsBy(expressionsGen().Draw(t, "selector")...)
	}
	return selects(rapid.SampledFrom(overlapKeys).Draw(t, "key"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "value"))
}

func genRequirements(t *rapid.T) ruleOption {
	types := rapid.SliceOfNDistinct(rapid.SampledFrom(conditionTypes), 1, 2, rapid.ID).Draw(t, "types")
	var requirements []v1alpha1.ConditionRequirement
	for _, conditionType := range types {
		q := requirement(conditionType, rapid.SampledFrom(allStatuses).Draw(t, "required"))
		if oneIn(t, 3, "has default") {
			q.DefaultStatus = rapid.SampledFrom(allStatuses).Draw(t, "default")
		}
		requirements = append(requirements, q)
	}
	return requires(requirements...)
}

// genNode is a node in any state: tainted, recorded and forged without rhyme or reason.
func genNode(t *rapid.T) *noderule.Node {
	n := node(nodeCreatedAt(dayOne.Add(time.Duration(rapid.IntRange(10, 14).Draw(t, "created")) * time.Hour)))
	n.Labels = genLabels(t)
	taints := rapid.SliceOfNDistinct(rapid.SampledFrom(everyTaint), 0, 5, rapid.ID).Draw(t, "taints")
	for _, id := range taints {
		n.Taints = append(n.Taints, genTaint(t, id))
	}
	for _, conditionType := range rapid.Permutation(conditionTypes).Draw(t, "conditions") {
		if !oneIn(t, 3, "absent") {
			reports(conditionType, rapid.SampledFrom(allStatuses).Draw(t, "status"))(n)
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "annotations") {
		annotated(genAnnotation(t))(n)
	}
	return n
}

func genLabels(t *rapid.T) labels.Set {
	return labelled(rapid.SampledFrom(labelChoices).Draw(t, "role"), rapid.SampledFrom(labelChoices).Draw(t, "zone"))
}

func genTaint(t *rapid.T, id noderule.TaintID) corev1.Taint {
	return corev1.Taint{Key: id.Key, Effect: id.Effect, Value: rapid.SampledFrom([]string{"", "pending", "other"}).Draw(t, "value")}
}

// genAnnotation is a record, a completion or something foreign; its value may be forged.
func genAnnotation(t *rapid.T) (string, string) {
	name := rapid.SampledFrom(recordNames).Draw(t, "of rule")
	taint := rapid.SampledFrom(everyTaint).Draw(t, "recorded taint")
	key := rapid.SampledFrom([]string{
		holdKey(name), holdKey(name), completedKey(name), completedKey(name), v1alpha1.CompletedPrefix + name,
		v1alpha1.HoldPrefix, v1alpha1.HoldPrefix + name, v1alpha1.CompletedPrefix, "example.com/" + name, "readiness.k8s.io/x",
	}).Draw(t, "annotation key")
	value := rapid.SampledFrom([]string{
		fmt.Sprintf(`{"rule":%q,"taint":%q,"origin":"added"}`, name, taint), fmt.Sprintf(`{"rule-name":%q}`, name),
		"", "{", "null", `{"rule-name":""}`, fmt.Sprintf(`{"taint":%q}`, taint.Key), fmt.Sprintf(`{"taint":%q,"since":"never"}`, taint),
	}).Draw(t, "annotation value")
	return key, value
}

// genChange is the node some writes later. Nothing of the node before is changed.
func genChange(t *rapid.T, before *noderule.Node) *noderule.Node {
	after := *before
	after.Labels, after.Annotations = maps.Clone(before.Labels), maps.Clone(before.Annotations)
	after.Taints, after.Conditions = slices.Clone(before.Taints), slices.Clone(before.Conditions)
	for range rapid.IntRange(1, 2).Draw(t, "writes") {
		switch rapid.SampledFrom([]string{"labels", "taint", "taints", "condition", "conditions", "annotation", "recreated"}).Draw(t, "write") {
		case "labels":
			after.Labels = genLabels(t)
		case "taint":
			toggleTaint(&after, genTaint(t, rapid.SampledFrom(everyTaint).Draw(t, "taint")))
		case "taints":
			after.Taints = rapid.Permutation(after.Taints).Draw(t, "order of taints")
		case "condition":
			changeCondition(t, &after, corev1.NodeConditionType(rapid.SampledFrom(conditionTypes).Draw(t, "condition")))
		case "conditions":
			after.Conditions = rapid.Permutation(after.Conditions).Draw(t, "order of conditions")
		case "annotation":
			if key, value := genAnnotation(t); rapid.Bool().Draw(t, "annotation goes") {
				delete(after.Annotations, key)
			} else {
				after.Annotations[key] = value
			}
		case "recreated":
			after.UID, after.Created = "node-2", after.Created.Add(3*time.Hour)
		}
	}
	return &after
}

// toggleTaint takes the taint off, or puts it on.
func toggleTaint(n *noderule.Node, taint corev1.Taint) {
	same := func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }
	if slices.ContainsFunc(n.Taints, same) {
		n.Taints = slices.DeleteFunc(n.Taints, same)
		return
	}
	n.Taints = append(n.Taints, taint)
}

func changeCondition(t *rapid.T, n *noderule.Node, conditionType corev1.NodeConditionType) {
	i := slices.IndexFunc(n.Conditions, func(c corev1.NodeCondition) bool { return c.Type == conditionType })
	status := rapid.SampledFrom(allStatuses).Draw(t, "new status")
	switch {
	case i < 0:
		reports(string(conditionType), status)(n)
	case oneIn(t, 3, "condition goes"):
		n.Conditions = slices.Delete(n.Conditions, i, i+1)
	default:
		n.Conditions[i].Status, n.Conditions[i].LastHeartbeatTime = status, metav1.NewTime(noon)
	}
}
