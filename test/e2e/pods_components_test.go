package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// staticPods is the directory from which the kubelets of this scenario read static pods.
const staticPods = "/var/lib/kubelet/manifests"

// Scenarios 13 to 15, in one cluster: each component of a pod's network has to report ready; with startHold
// no container starts before; and pods that no rule may select are not changed.
func TestPodsWaitForTheComponentsOfTheirNetwork(t *testing.T) {
	l := lab.Start(t)
	for _, name := range []string{"n1", "n2"} {
		l.Join(t, name, "--pod-manifest-path="+staticPods)
	}
	l.InstallFlannel(t)
	installPods(t, l)
	l.EventuallyNodes(t, "ready", is(string(corev1.NodeReady), corev1.ConditionTrue), "n1", "n2")
	attended(t, l)
	l.Step(t, "two nodes have a network and an agent")
	t.Run("for all of them", func(t *testing.T) { waitForBoth(t, l) })
	t.Run("unless no rule may select them", func(t *testing.T) { leftAlone(t, l) })
	t.Run("before they start", func(t *testing.T) { startHeld(t, l) })
	t.Run("without being late for it", func(t *testing.T) { holdMeasured(t, l) })
}

// waitForBoth: flannel reports with a node condition, which a reporter sets, and the policy engine with a
// pod condition. The pod is Ready when both are True, in either order. The rule is the example's.
func waitForBoth(t *testing.T, l *lab.Lab) {
	applyExampleRule(t, l, "pod-network/flannel-and-policy", "network")
	early := idle("early", "both", onNode("n1"))
	l.Create(t, early)
	program(t, l, early, time.Now())
	eventuallyPod(t, l, "early", "waiting for flannel alone", waitsFor("flannel", "policy"))
	l.Step(t, "a pod that is programmed waits for flannel")

	l.Helm(t, "upgrade", release, chart(), "--namespace", namespace, "--set", "podgate.enabled=true", "--values", testdata("flannel-values.yaml"))
	l.EventuallyNodes(t, "reported", is(flannelCondition, corev1.ConditionTrue), "n1", "n2")
	eventuallyPod(t, l, "early", "ready", isOpen(podv1alpha1.ReasonAllReady))
	l.Step(t, "a reporter of flannel was installed: the pod is ready")

	late := idle("late", "both", onNode("n1"))
	l.Create(t, late)
	eventuallyPod(t, l, "late", "waiting for the policy engine alone", waitsFor("policy", "flannel"))
	if text := readiness(t, l, "why", "pod/late", "-n", metav1.NamespaceDefault); !strings.Contains(text, "policy") {
		t.Errorf("why does not name the component that the pod waits for:\n%s", text)
	}
	program(t, l, late, time.Now())
	eventuallyPod(t, l, "late", "ready", isOpen(podv1alpha1.ReasonAllReady))
	l.Step(t, "another pod waited for the policy engine, and is ready")
}

// leftAlone: pods with hostNetwork, static pods and pods that opt out.
func leftAlone(t *testing.T, l *lab.Lab) {
	applyPodRule(t, l, "aside", `  startHold: true
  components: [{name: never, podCondition: {type: example.com/never}}]
`, "aside")
	manifest := filepath.Join(l.Node("n1").Disk(staticPods), "static.yaml")
	if err := os.MkdirAll(filepath.Dir(manifest), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte(`apiVersion: v1
kind: Pod
metadata: {name: static, namespace: default, labels: {app: aside}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: idle, image: "lab/pause:1"}]
`), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(manifest) })
	l.Create(t, idle("host", "aside", onNode("n1"), func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }))
	l.Create(t, idle("out", "aside", onNode("n1"), func(pod *corev1.Pod) { pod.Labels[podv1alpha1.OptOutLabel] = podv1alpha1.OptOut }))
	l.Create(t, idle("ordinary", "aside", onNode("n1")))
	for _, name := range []string{"host", "out", "static-n1"} {
		if pod := eventuallyPod(t, l, name, "ready", isReady); touched(pod) {
			t.Errorf("%s was changed: gates %v, init containers %v, annotations %v", name, pod.Spec.ReadinessGates, pod.Spec.InitContainers, pod.Annotations)
		}
	}
	ordinary := eventuallyPod(t, l, "ordinary", "held", func(pod *corev1.Pod) bool { return len(pod.Status.InitContainerStatuses) > 0 })
	if !touched(ordinary) || !podrule.HasLatch(ordinary) || isReady(ordinary) {
		t.Error("an ordinary pod is neither gated nor held: the test shows nothing")
	}
	if !hasToken(ordinary, "idle") || hasToken(ordinary, podv1alpha1.LatchName) {
		t.Errorf("the app must have a token and the latch none: %+v", ordinary.Spec)
	}
	l.Step(t, "pods with hostNetwork, static pods and pods that opt out are unchanged")
}

// hasToken reports whether a container has the token of the pod's service account.
func hasToken(pod *corev1.Pod, container string) bool {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			if c.Name == container && i >= 0 && pod.Spec.Volumes[i].Projected != nil {
				return true
			}
		}
	}
	return false
}

// touched reports whether the pod has a gate, latch or annotation of Readygate.
func touched(pod *corev1.Pod) bool {
	return len(pod.Spec.ReadinessGates) > 0 || podrule.HasLatch(pod) || pod.Annotations[podv1alpha1.GatesAnnotation] != "" || pod.Annotations[podv1alpha1.LatchAnnotation] != "" ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == podv1alpha1.LatchName })
}

// startHeld: an app connects once when it starts, and exits with an error if that fails. A pod that is not
// programmed cannot connect. With the hold the app never fails.
func startHeld(t *testing.T, l *lab.Lab) {
	e := startEngine(t, l, "target", "hasty", "hasty-once", "patient", "patient-once", "patient-job")
	e.guard(t, l.Node("n1"))
	e.guard(t, l.Node("n2"))
	workload(t, l, "target", 1, on("n1"), anywhere)
	target := eventuallyPod(t, l, working(t, l, "target", 1)[0].Name, "programmed", isProgrammed).Status.PodIP
	applyPodRule(t, l, "hold", `  startHold: true
  components: [{name: policy, podCondition: {type: `+programmed+`}}]
`, "patient", "patient-once", "patient-job")

	const stay = "; exec sleep 1000000"
	workload(t, l, "hasty", 1, on("n2"), anywhere, connects(target, stay))
	workload(t, l, "patient", 1, on("n2"), anywhere, connects(target, stay))
	for _, name := range []string{"hasty-once", "patient-once"} {
		l.Create(t, once(name, target))
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "patient-job", Namespace: metav1.NamespaceDefault},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "patient-job"}}, Spec: once("", target).Spec},
		},
	}
	l.Create(t, job)

	testenv.Eventually(t, "a restart without the hold", func(context.Context) error {
		if restarts(podsOf(t, l, metav1.NamespaceDefault, "hasty")) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	eventuallyPod(t, l, "hasty-once", "failed without the hold", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	hasty := working(t, l, "hasty", 1)
	l.Step(t, fmt.Sprintf("without the hold: %d restarts until the app found a network, and a pod that is not restarted failed", restarts(hasty)))

	patient := working(t, l, "patient", 1)
	if n := restarts(patient); n > 0 {
		t.Errorf("with the hold the app was restarted %d times, must be never", n)
	}
	ends := func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}
	if pod := eventuallyPod(t, l, "patient-once", "ended", ends); pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("with the hold a pod that is not restarted failed: %+v", pod.Status.ContainerStatuses)
	}
	l.Kubectl.Run(t, "wait", "--for=condition=Complete", "job/patient-job", "--timeout=90s")
	for _, pod := range append(patient, podsOf(t, l, metav1.NamespaceDefault, "patient-job")...) {
		if !startedWhenProgrammed(&pod) {
			t.Errorf("%s started before it was programmed: %+v", pod.Name, pod.Status)
		}
	}
	l.Step(t, "with the hold: no restart; a pod that is not restarted and a Job have succeeded")
}

// connects makes the container fetch a page once, and exit with an error if that fails.
func connects(to, then string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Containers[0].Command = []string{"/bin/sh", "-c", "wget -qO- http://" + to + "/ || exit 1" + then}
		pod.Containers[0].ReadinessProbe = nil
	}
}

// once returns a pod that connects and ends.
func once(name, to string) *corev1.Pod {
	return idle(name, name, onNode("n2"), func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0] = corev1.Container{Name: "web", Image: "lab/busybox:1", Env: []corev1.EnvVar{{Name: "PATH", Value: "/bin"}}}
		connects(to, "")(&pod.Spec)
	})
}

func restarts(pods []corev1.Pod) int32 {
	var n int32
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			n += status.RestartCount
		}
	}
	return n
}

// startedWhenProgrammed reports whether the pod's container has started, and not before the policy engine
// reported ready.
func startedWhenProgrammed(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		var started metav1.Time
		switch state := status.State; {
		case state.Running != nil:
			started = state.Running.StartedAt
		case state.Terminated != nil:
			started = state.Terminated.StartedAt
		}
		if started.IsZero() || started.Time.Before(conditionOf(pod, programmed).LastTransitionTime.Time) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// holdMeasured measures how much later a pod is Ready with the hold if its network is ready at once.
func holdMeasured(t *testing.T, l *lab.Lab) {
	const rounds = 11
	var apps []string
	for i := range rounds {
		apps = append(apps, fmt.Sprint("held-", i))
	}
	applyPodRule(t, l, "at-once", `  startHold: true
  components: [{name: node, nodeCondition: {type: Ready}}]
`, apps...)
	var plain, held []time.Duration
	for i, app := range apps {
		free := fmt.Sprint("free-", i)
		plain = append(plain, readyAfter(t, l, idle(free, free, onNode("n2")), free, 1, nil))
		held = append(held, readyAfter(t, l, idle(app, app, onNode("n2")), app, 1, nil))
	}
	without, with := median(plain), median(held)
	l.Step(t, fmt.Sprintf("a pod is ready after %v, with the hold after %v (medians of %d): it adds %v",
		without.Round(time.Millisecond), with.Round(time.Millisecond), rounds, (with-without).Round(time.Millisecond)))
}
