// Package reporters finds the pods that report node conditions, and the taints that keep them off nodes.
package reporters

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReporterName is the name of the reporter's program and image.
const ReporterName = "readygate-reporter"

// ReportsAnnotation is on a DaemonSet whose pods write node conditions themselves. Its value is the condition types,
// separated by commas.
const ReportsAnnotation = "readygate.dev/reports"

// conditionType is the environment variable of a reporter with the condition type.
const conditionType = "CONDITION_TYPE"

// Reports reports whether the pods write node conditions, and which. The types may be incomplete: a reporter can have its
// configuration in a file.
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

// RunsReporter reports whether the container's image or command is that of the reporter.
func RunsReporter(c *corev1.Container) bool {
	image, _, _ := strings.Cut(path.Base(c.Image), "@")
	image, _, _ = strings.Cut(image, ":")
	return image == ReporterName || len(c.Command) > 0 && path.Base(c.Command[0]) == ReporterName
}

// Tolerates reports whether the pods may start, and stay, on a node with the taint.
func Tolerates(pod *corev1.PodSpec, taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && t.ToleratesTaint(logr.Discard(), taint, false)
	})
}

// Strip is a cache transform. It reduces a DaemonSet to the fields that Find uses.
func Strip(obj any) (any, error) {
	ds, ok := obj.(*appsv1.DaemonSet)
	if !ok {
		return obj, nil
	}
	stripped := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: ds.Namespace, Name: ds.Name, UID: ds.UID, ResourceVersion: ds.ResourceVersion, Generation: ds.Generation,
	}}
	if reports, ok := ds.Annotations[ReportsAnnotation]; ok {
		stripped.Annotations = map[string]string{ReportsAnnotation: reports}
	}
	pod := &stripped.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = ds.Spec.Template.Spec.NodeSelector, ds.Spec.Template.Spec.Tolerations
	for _, c := range slices.Concat(ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers) {
		kept := corev1.Container{Image: c.Image, Command: c.Command[:min(1, len(c.Command))]}
		for _, env := range c.Env {
			if env.Name == conditionType {
				kept.Env = append(kept.Env, env)
			}
		}
		if len(kept.Env) > 0 || RunsReporter(&kept) {
			pod.Containers = append(pod.Containers, kept)
		}
	}
	return stripped, nil
}

// Find considers the DaemonSets that report one of these conditions. It returns the names (namespace/name, sorted) of those
// that do not tolerate the taint, and the number of all. It ignores DaemonSets whose nodeSelector runsOn rejects.
func Find(all iter.Seq[*appsv1.DaemonSet], types []string, taint *corev1.Taint, runsOn func(nodeSelector map[string]string) bool) (blocked []string, known int) {
	for ds := range all {
		pod := &ds.Spec.Template.Spec
		writes, _ := Reports(ds.Annotations, pod)
		if !slices.ContainsFunc(writes, func(t string) bool { return slices.Contains(types, t) }) || !runsOn(pod.NodeSelector) {
			continue
		}
		known++
		if !Tolerates(pod, taint) {
			blocked = append(blocked, ds.Namespace+"/"+ds.Name)
		}
	}
	slices.Sort(blocked)
	return blocked, known
}
