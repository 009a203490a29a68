package live

import corev1 "k8s.io/api/core/v1"

func (f *Fleet) putPod(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := podKey(pod)
	f.lookAtGates(key, pod)
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		f.countPod(key, "", false)
		return
	}
	f.countPod(key, pod.Spec.NodeName, true)
}

func (f *Fleet) dropPod(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetGates(podKey(pod))
	f.countPod(podKey(pod), "", false)
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// countPod counts a pod where it is now, and no longer where it was.
func (f *Fleet) countPod(key, node string, there bool) {
	before, known := f.pods[key]
	if known && there && before == node {
		return
	}
	if known {
		f.podOn(before, -1)
		delete(f.pods, key)
	}
	if there {
		f.podOn(node, 1)
		f.pods[key] = node
	}
}

func (f *Fleet) podOn(node string, by int) {
	if node == "" {
		f.waiting += by
	} else if f.podsOn[node] += by; f.podsOn[node] == 0 {
		delete(f.podsOn, node)
	}
	f.tell(func(c *changes) { c.pods[node] = struct{}{} })
}
