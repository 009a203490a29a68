package lint

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/core/reporters"
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

// reporter is something in the files that writes conditions.
type reporter struct {
	document
	pod corev1.PodSpec
	// types are the conditions that it writes; none if the files do not tell.
	types []string
	// heartbeat is how often it writes them; zero if nobody knows.
	heartbeat time.Duration
}

// config is what a configuration of a reporter tells.
type config struct {
	types     []string
	heartbeat time.Duration
}

// reportersIn are the workloads that report, as far as the files tell.
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
			continue // not ours to judge: the API server will say it
		}
		if it.read(configs) {
			reporters = append(reporters, it)
		}
	}
	return reporters
}

// read finds out what the pod reports, and whether it reports at all.
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

// configIn is what configurations of reporters in the ConfigMap tell.
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
