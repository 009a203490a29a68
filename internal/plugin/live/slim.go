package live

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// slim is a pod with what decisions about its gates need. It is a new object: nothing of the large one
// is kept alive.
func slim(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, ReadinessGates: pod.Spec.ReadinessGates},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, PodIP: pod.Status.PodIP, PodIPs: pod.Status.PodIPs},
	}
	for _, key := range []string{podv1alpha1.GatesAnnotation, podv1alpha1.LatchAnnotation, corev1.MirrorPodAnnotationKey} {
		if value, has := pod.Annotations[key]; has {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	if podrule.HasLatch(pod) {
		kept.Spec.InitContainers = []corev1.Container{{Name: podv1alpha1.LatchName}}
	}
	for i := range pod.Status.InitContainerStatuses {
		if is := &pod.Status.InitContainerStatuses[i]; is.Name == podv1alpha1.LatchName {
			kept.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: is.Name, State: is.State}}
		}
	}
	return kept
}

// closed says that a gate of the pod that rules may open is closed, and that somebody waits for it.
func closed(pod *corev1.Pod) bool {
	return !podrule.Over(pod) && slices.ContainsFunc(podrule.Ours(pod), func(gate string) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return string(c.Type) == gate && c.Status == corev1.ConditionTrue
		})
	})
}
