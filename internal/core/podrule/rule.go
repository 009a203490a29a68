package podrule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Rule is a compiled PodReadinessRule. It is shared and immutable.
type Rule struct {
	Name       string
	UID        types.UID
	Generation int64
	Created    time.Time
	Gate       string
	Components []Component
	StartHold  bool
	// Deadline is how long a pod may wait before it is late; zero: no deadline.
	Deadline time.Duration
	// OpenLate means that the gate of a late pod is opened.
	OpenLate bool
	// CloseOnNotReady means that an open gate closes when a component is no longer ready.
	CloseOnNotReady bool
	Deleting        bool
	// Invalid is why the rule cannot be enforced; nil if it can.
	Invalid error

	namespaces, pods labels.Requirements
	// excluded are the reserved namespaces that the rule does not name.
	excluded []string
}

// Reserved are the namespaces whose pods a rule selects only if it names the namespace: without these pods, no gate would
// ever open.
var Reserved = []string{metav1.NamespaceSystem, OwnNamespace}

// OwnNamespace is where Readygate itself runs.
const OwnNamespace = "readygate-system"

// NewRule compiles a rule. An invalid rule has the field Invalid, and no effect.
func NewRule(obj *v1alpha1.PodReadinessRule) *Rule {
	spec := &obj.Spec
	rule := &Rule{
		Name: obj.Name, UID: obj.UID, Generation: obj.Generation, Created: obj.CreationTimestamp.Time,
		Gate: cmp.Or(spec.Gate, v1alpha1.DefaultGate), StartHold: spec.StartHold, OpenLate: spec.OnDeadline == v1alpha1.DeadlineOpen,
		CloseOnNotReady: spec.ClosePolicy == v1alpha1.CloseOnNotReady, Deleting: obj.DeletionTimestamp != nil,
	}
	if spec.DeadlineSeconds != nil {
		rule.Deadline = time.Duration(*spec.DeadlineSeconds) * time.Second
	}
	for i := range spec.Components {
		rule.Components = append(rule.Components, newComponent(&spec.Components[i]))
	}
	var err error
	if rule.namespaces, err = requirements(spec.NamespaceSelector); err != nil {
		rule.Invalid = fmt.Errorf("spec.namespaceSelector: %w", err)
	} else if rule.pods, err = requirements(spec.PodSelector); err != nil {
		rule.Invalid = fmt.Errorf("spec.podSelector: %w", err)
	}
	named := namedIn(rule.namespaces)
	rule.excluded = slices.DeleteFunc(slices.Clone(Reserved), func(name string) bool { return slices.Contains(named, name) })
	return rule
}

// NewRules compiles rules, oldest first.
func NewRules(objs []*v1alpha1.PodReadinessRule) []*Rule {
	rules := make([]*Rule, len(objs))
	for i, obj := range objs {
		rules[i] = NewRule(obj)
	}
	slices.SortFunc(rules, func(a, b *Rule) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return rules
}

// Active reports whether the rule is valid and not being deleted.
func (r *Rule) Active() bool { return !r.Deleting && r.Invalid == nil }

// Namespaces are the requirements on labels of namespaces.
func (r *Rule) Namespaces() labels.Requirements { return r.namespaces }

// Pods are the requirements on labels of pods.
func (r *Rule) Pods() labels.Requirements { return r.pods }

// Excludes are the namespaces that the rule does not select although its selector may match them.
func (r *Rule) Excludes() []string { return r.excluded }

// Selects reports whether the rule selects a pod of a namespace with these labels.
func (r *Rule) Selects(pod *corev1.Pod, namespace map[string]string) bool {
	return Eligible(pod) && !slices.Contains(r.excluded, pod.Namespace) &&
		matches(r.namespaces, labelsOf(pod.Namespace, namespace)) && matches(r.pods, pod.Labels)
}

// Eligible reports whether any rule may select the pod. Excluded are pods with hostNetwork, mirror pods, pods for Windows,
// where no agent runs, and pods that opt out.
func Eligible(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !pod.Spec.HostNetwork && !mirror && !windows(pod) && pod.Labels[v1alpha1.OptOutLabel] != v1alpha1.OptOut
}

func windows(pod *corev1.Pod) bool {
	return pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows || pod.Spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
}

// labelsOf are the labels of a namespace, always with the label of its name: the others may not have been read yet.
func labelsOf(name string, namespace map[string]string) labels.Set {
	if namespace[corev1.LabelMetadataName] == name {
		return namespace
	}
	return labels.Merge(namespace, labels.Set{corev1.LabelMetadataName: name})
}

func matches(all labels.Requirements, set labels.Set) bool {
	for i := range all {
		if !all[i].Matches(set) {
			return false
		}
	}
	return true
}

// requirements are those of a selector; none if there is no selector.
func requirements(selector *v1alpha1.LabelSelector) (labels.Requirements, error) {
	if selector == nil {
		return nil, nil
	}
	plain := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range selector.MatchLabels {
		plain.MatchLabels[key] = string(value)
	}
	for _, e := range selector.MatchExpressions {
		requirement := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, value := range e.Values {
			requirement.Values = append(requirement.Values, string(value))
		}
		plain.MatchExpressions = append(plain.MatchExpressions, requirement)
	}
	parsed, err := metav1.LabelSelectorAsSelector(plain)
	if err != nil {
		return nil, err
	}
	all, _ := parsed.Requirements()
	return all, nil
}

// namedIn are the reserved namespaces that requirements on labels of namespaces name.
func namedIn(namespaces labels.Requirements) []string {
	var named []string
	for i := range namespaces {
		r := &namespaces[i]
		if r.Key() != corev1.LabelMetadataName || r.Operator() != selection.In && r.Operator() != selection.Equals && r.Operator() != selection.DoubleEquals {
			continue
		}
		for _, name := range Reserved {
			if r.Values().Has(name) && !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
	}
	return named
}
