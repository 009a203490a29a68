package lint

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// podSpecs are where the kinds that make pods have the description of one.
var podSpecs = map[string][]string{
	"Pod":         {"spec"},
	"DaemonSet":   {"spec", "template", "spec"},
	"Deployment":  {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"},
	"ReplicaSet":  {"spec", "template", "spec"},
	"Job":         {"spec", "template", "spec"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template", "spec"},
}

// reporterName is the name of the reporter's program and image.
const reporterName = "readygate-reporter"

// reporter is something in the files that writes conditions.
type reporter struct {
	document
	pod corev1.PodSpec
	// types are the conditions that it writes; none if the files do not tell.
	types []string
}

// reportersIn are the workloads that report, as far as the files tell.
func reportersIn(documents []document) []reporter {
	configs := map[string][]string{} // condition types, by namespace and name of the ConfigMap
	for _, d := range documents {
		if d.GetKind() == "ConfigMap" {
			configs[d.GetNamespace()+"/"+d.GetName()] = typesInConfigMap(d)
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
			continue // not ours to judge: the API server will say it
		}
		if it.read(configs) {
			reporters = append(reporters, it)
		}
	}
	return reporters
}

// read finds out what the pod reports, and whether it reports at all.
func (r *reporter) read(configs map[string][]string) bool {
	reports := false
	for _, c := range slices.Concat(r.pod.InitContainers, r.pod.Containers) {
		for _, env := range c.Env {
			if env.Name == "CONDITION_TYPE" && env.Value != "" {
				reports = true
				r.types = append(r.types, env.Value)
			}
		}
		if !runsReporter(c) {
			continue
		}
		reports = true
		for _, volume := range r.pod.Volumes {
			if volume.ConfigMap != nil {
				r.types = append(r.types, configs[r.GetNamespace()+"/"+volume.ConfigMap.Name]...)
			}
		}
	}
	return reports
}

// runsReporter says whether the container's image or command is that of the reporter.
func runsReporter(c corev1.Container) bool {
	image, _, _ := strings.Cut(path.Base(c.Image), "@")
	image, _, _ = strings.Cut(image, ":")
	return image == reporterName || len(c.Command) > 0 && path.Base(c.Command[0]) == reporterName
}

// typesInConfigMap are the conditions that configurations of reporters in the ConfigMap name.
func typesInConfigMap(d document) []string {
	data, _, _ := unstructured.NestedStringMap(d.Object, "data")
	var types []string
	for _, text := range data {
		var config struct {
			Kind   string `json:"kind"`
			Checks []struct {
				ConditionType string `json:"conditionType"`
			} `json:"checks"`
		}
		if checkText([]byte(text)) != nil || yaml.Unmarshal([]byte(text), &config) != nil || config.Kind != "ReporterConfig" {
			continue
		}
		for _, check := range config.Checks {
			types = append(types, check.ConditionType)
		}
	}
	return types
}
