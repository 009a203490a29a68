// Package reporters finds the pods that report node conditions, and the taints that keep them off nodes.
package reporters

import (
	"path"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// ReporterName is the name of the reporter's program and image.
const ReporterName = "readygate-reporter"

// ReportsAnnotation is on a DaemonSet of a component that writes conditions by itself, and names
// their types, separated by commas.
const ReportsAnnotation = "readygate.dev/reports"

// conditionType is the variable of a reporter that names the condition.
const conditionType = "CONDITION_TYPE"

// Reports says whether the pods report, and which conditions, as far as the pod alone tells: a
// reporter can have its configuration elsewhere.
func Reports(annotations map[string]string, pod *corev1.PodSpec) (types []string, reports bool) {
	for name := range strings.SplitSeq(annotations[ReportsAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			types, reports = append(types, name), true
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, env := range c.Env {
			if env.Name == conditionType && env.Value != "" {
				types, reports = append(types, env.Value), true
			}
		}
		reports = reports || RunsReporter(&c)
	}
	return types, reports
}

// RunsReporter says whether the container's image or command is that of the reporter.
func RunsReporter(c *corev1.Container) bool {
	image, _, _ := strings.Cut(path.Base(c.Image), "@")
	image, _, _ = strings.Cut(image, ":")
	return image == ReporterName || len(c.Command) > 0 && path.Base(c.Command[0]) == ReporterName
}

// Tolerates says whether the pods may start, and stay, on a node with the taint.
func Tolerates(pod *corev1.PodSpec, taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && t.ToleratesTaint(logr.Discard(), taint, false)
	})
}
