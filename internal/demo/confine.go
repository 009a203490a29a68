package demo

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// What tells nodes of the demo from others.
const (
	// SimulatedLabel is on every node of the demo, and the key of the taint that keeps pods of
	// others away from it.
	SimulatedLabel = "readygate.dev/simulated"
	// Namespace is where the pods of a story are.
	Namespace = "readygate-demo"

	kwokAnnotation = "kwok.x-k8s.io/node"
	// awayAnnotation is on a node that is away for a reboot: KWOK does not make it Ready then.
	awayAnnotation = "readygate.dev/demo-away"
	partOfLabel    = "app.kubernetes.io/part-of"
	partOf         = "readygate-demo"

	ownName  = "demo-"
	ownLabel = "demo.readygate.dev/"
)

// names are how things of a story are called in the cluster. In a cluster of others nothing
// may be called as something of theirs: not a node, rule, label or taint.
type names struct{ confined bool }

func (n names) node(name string) string { return n.prefixed(name) }

func (n names) rule(name string) string { return n.prefixed(name) }

func (n names) prefixed(name string) string {
	if !n.confined {
		return name
	}
	return ownName + name
}

// told is a text about the cluster in the names of the story.
func (n names) told(text string, called []string) string {
	if !n.confined {
		return text
	}
	for _, name := range called {
		text = strings.ReplaceAll(text, ownName+name, name)
	}
	return text
}

// label gives a key a prefix that nobody else selects by, e.g. demo.readygate.dev/worker.
func (n names) label(key string) string {
	if !n.confined {
		return key
	}
	return ownLabel + key[strings.LastIndex(key, "/")+1:]
}

func (n names) labels(given map[string]string) map[string]string {
	renamed := make(map[string]string, len(given))
	for key, value := range given {
		renamed[n.label(key)] = value
	}
	return renamed
}

// confine marks a rule as the demo's. In a cluster of others it is confined to what is of the demo.
func (n names) confine(obj client.Object) {
	labels := map[string]string{}
	maps.Copy(labels, obj.GetLabels())
	labels[partOfLabel], labels[madeLabel] = partOf, "true"
	obj.SetLabels(labels)
	if !n.confined {
		return
	}
	obj.SetName(n.rule(obj.GetName()))
	switch rule := obj.(type) {
	case *v1alpha1.NodeReadinessRule:
		n.confineToNodes(rule)
	case *podv1alpha1.PodReadinessRule: // to pods of the story
		rule.Spec.NamespaceSelector = &podv1alpha1.LabelSelector{MatchLabels: map[string]podv1alpha1.LabelValue{corev1.LabelMetadataName: Namespace}}
	}
}

// confineToNodes confines a rule to nodes of the demo, to a taint that no rule of others has, and to
// DaemonSets of the demo.
func (n names) confineToNodes(rule *v1alpha1.NodeReadinessRule) {
	for _, prefix := range v1alpha1.TaintPrefixes {
		if key, found := strings.CutPrefix(rule.Spec.Taint.Key, prefix); found {
			rule.Spec.Taint.Key = prefix + ownName + key
			break
		}
	}
	selector := &rule.Spec.NodeSelector
	renamed := map[string]v1alpha1.LabelValue{SimulatedLabel: "true"}
	for key, value := range selector.MatchLabels {
		renamed[n.label(key)] = value
	}
	selector.MatchLabels = renamed
	for i := range selector.MatchExpressions {
		selector.MatchExpressions[i].Key = n.label(selector.MatchExpressions[i].Key)
	}
	for i, name := range rule.Spec.DependsOn {
		rule.Spec.DependsOn[i] = n.rule(name)
	}
	if rule.Spec.Tolerations != nil {
		rule.Spec.Tolerations.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{corev1.LabelMetadataName: Namespace}}
	}
}

// nodeLabels are those of a node that joins with these.
func (n names) nodeLabels(name string, given map[string]string) map[string]string {
	all := n.labels(given)
	maps.Copy(all, map[string]string{SimulatedLabel: "true", partOfLabel: partOf, corev1.LabelHostname: n.node(name)})
	return all
}

// podSelector lets pods of the story run on nodes of the demo alone.
func (n names) podSelector(on map[string]string) map[string]string {
	all := n.labels(on)
	all[SimulatedLabel] = "true"
	return all
}

// simulatedTaint keeps pods of others away from nodes of the demo.
var simulatedTaint = corev1.Taint{Key: SimulatedLabel, Value: "true", Effect: corev1.TaintEffectNoSchedule}
