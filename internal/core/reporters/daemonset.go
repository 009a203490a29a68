package reporters

import (
	"iter"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Strip cuts a DaemonSet down to what tells who reports, and what keeps it away. It is a transform
// for a cache.
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

// Find returns the DaemonSets that report one of these conditions: those that a taint keeps off
// nodes, and how many there are in all. Names are namespace/name, in order. A DaemonSet that runs
// only on nodes with labels that these nodes cannot have is none of them.
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
