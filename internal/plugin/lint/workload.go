package lint

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/reporters"
)

// podSpecs maps workload kinds to the path of their pod spec.
var podSpecs = map[string][]string{
	"Pod":         {"spec"},
	"DaemonSet":   {"spec", "template", "spec"},
	"Deployment":  {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"},
	"ReplicaSet":  {"spec", "template", "spec"},
	"Job":         {"spec", "template", "spec"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template", "spec"},
}

// reporter is a workload in the files that writes conditions.
type reporter struct {
	document
	pod corev1.PodSpec
	// types are the conditions that it writes; empty if unknown.
	types []string
	// heartbeat is the period with which it writes them; zero if unknown.
	heartbeat time.Duration
}

// config is the relevant part of a reporter's configuration.
type config struct {
	types     []string
	heartbeat time.Duration
}

// reportersIn returns the workloads that report conditions, as far as the files show.
func reportersIn(documents []document) []reporter {
	configs := map[string]config{} // by namespace and name of the ConfigMap
	for _, d := range documents {
		if d.GetKind() == "ConfigMap" {
			configs[d.GetNamespace()+"/"+d.GetName()] = configIn(d)
		}
	}
	var reporters []reporter
	for _, d := range documents {
		at, makesPods := podSpecs[d.GetKind()]
		spec, found, _ := unstructured.NestedMap(d.Object, at...)
		if !makesPods || !found {
			continue
		}
		it := reporter{document: d}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &it.pod) != nil {
			continue // invalid pod spec: left to the API server
		}
		if it.read(configs) {
			reporters = append(reporters, it)
		}
	}
	return reporters
}

// read finds the conditions that the pod reports, and whether it reports any.
func (r *reporter) read(configs map[string]config) (reports bool) {
	r.types, reports = reporters.Reports(r.GetAnnotations(), &r.pod)
	ours := false
	for _, c := range slices.Concat(r.pod.InitContainers, r.pod.Containers) {
		r.heartbeat = cmp.Or(heartbeatIn(c), r.heartbeat)
		if !reporters.RunsReporter(&c) {
			continue
		}
		ours = true
		for _, volume := range r.pod.Volumes {
			if volume.ConfigMap != nil {
				known := configs[r.GetNamespace()+"/"+volume.ConfigMap.Name]
				r.types, r.heartbeat = append(r.types, known.types...), cmp.Or(known.heartbeat, r.heartbeat)
			}
		}
	}
	if ours && r.heartbeat == 0 {
		r.heartbeat = defaultHeartbeat
	}
	return reports
}

// configIn returns the reporter configuration in the ConfigMap.
func configIn(d document) config {
	data, _, _ := unstructured.NestedStringMap(d.Object, "data")
	var found config
	for _, text := range data {
		var written struct {
			Kind            string `json:"kind"`
			HeartbeatPeriod string `json:"heartbeatPeriod"`
			Checks          []struct {
				ConditionType string `json:"conditionType"`
			} `json:"checks"`
		}
		if checkText([]byte(text)) != nil || yaml.Unmarshal([]byte(text), &written) != nil || written.Kind != "ReporterConfig" {
			continue
		}
		if period, err := time.ParseDuration(written.HeartbeatPeriod); err == nil {
			found.heartbeat = period
		}
		for _, check := range written.Checks {
			found.types = append(found.types, check.ConditionType)
		}
	}
	return found
}

// namespaces are the labels of the namespaces in the files.
type namespaces map[string]labels.Set

func namespacesIn(documents []document) namespaces {
	spaces := namespaces{}
	for _, d := range documents {
		if d.GetKind() == "Namespace" {
			spaces[d.GetName()] = labels.Merge(d.GetLabels(), nameLabel(d.GetName()))
		}
	}
	return spaces
}

// nameLabel returns the label that every namespace has.
func nameLabel(name string) labels.Set { return labels.Set{corev1.LabelMetadataName: name} }

// addsToleration reports whether the admission policy adds the toleration of the rule's taint to the workload.
func (n namespaces) addsToleration(rule *v1alpha1.NodeReadinessRule, d document) bool {
	wanted := rule.Spec.Tolerations
	if wanted == nil || rule.Spec.DryRun || d.GetKind() != "DaemonSet" {
		return false
	}
	space := d.GetNamespace()
	if space == "" {
		space = metav1.NamespaceDefault
	}
	known, ok := n[space]
	if !ok {
		known = nameLabel(space)
	}
	return selects(wanted.DaemonSetSelector, d.GetLabels()) && selects(wanted.NamespaceSelector, known)
}

// selects reports whether the selector matches the labels. A nil selector matches everything.
func selects(s *v1alpha1.LabelSelector, set labels.Set) bool {
	if s == nil {
		return true
	}
	plain := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range s.MatchLabels {
		plain.MatchLabels[key] = string(value)
	}
	for _, e := range s.MatchExpressions {
		expression := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, value := range e.Values {
			expression.Values = append(expression.Values, string(value))
		}
		plain.MatchExpressions = append(plain.MatchExpressions, expression)
	}
	selector, err := metav1.LabelSelectorAsSelector(plain)
	return err == nil && selector.Matches(set)
}
