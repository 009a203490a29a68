package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Functions for all scenarios.

const (
	release   = "readygate"
	namespace = "readygate-system"

	flannelTaint     = "readiness.k8s.io/FlannelReady"
	flannelCondition = "flannel.example.com/NetworkReady"
	flannelRule      = "flannel-readiness-rule"

	// worker sets the label that the examples select; a kubelet may set it on its own node.
	worker = "--node-labels=example.com/pool=workers"
)

// install installs the chart, and does not wait: the cluster may have no node yet.
func install(t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	l.Helm(t, append([]string{"install", release, chart(), "--namespace", namespace, "--create-namespace", "--set", "image.registry=registry.example.com"}, args...)...)
}

func chart() string { return filepath.Join(testenv.Root(), "charts", "readygate") }

// example returns the path of a file or directory that users apply.
func example(path string) string { return filepath.Join(testenv.Root(), "examples", path) }

// changed returns an example with some text replaced, as its comments ask for.
func changed(t *testing.T, path string, oldnew ...string) string {
	t.Helper()
	data, err := os.ReadFile(example(path))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("%s no longer contains %q", path, oldnew[i])
		}
		text = strings.ReplaceAll(text, oldnew[i], oldnew[i+1])
	}
	return text
}

// managed waits until the manager is available.
func managed(t *testing.T, l *lab.Lab) {
	t.Helper()
	l.Kubectl.Run(t, "wait", "deployment/readygate-manager", "-n", namespace, "--for=condition=Available", "--timeout=90s")
}

// covered waits until the API server adds the taint of the rule to new nodes.
func covered(t *testing.T, l *lab.Lab, rule string) {
	t.Helper()
	l.EventuallyRule(t, rule, "tainted at creation", testenv.Covered)
}

// workload creates pods without tolerations. They serve a page. A node, also a held one, gets at most a third
// of them, unless the caller passes anywhere.
func workload(t *testing.T, l *lab.Lab, name string, replicas int32, nodes map[string]string, change ...func(*corev1.PodSpec)) {
	t.Helper()
	labels := map[string]string{"app": name}
	port := intstr.FromInt32(80)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector:                  nodes,
					TerminationGracePeriodSeconds: ptr.To[int64](0),
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{ // otherwise the first released node gets all
						MaxSkew: max(1, replicas/3), TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{{
						Name: "web", Image: "lab/busybox:1",
						Command: []string{"/bin/sh", "-c", "mkdir /www && hostname >/www/index.html && exec httpd -f -p 80 -h /www"},
						Env:     []corev1.EnvVar{{Name: "PATH", Value: "/bin"}},
						ReadinessProbe: &corev1.Probe{
							ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port}}, PeriodSeconds: 1,
						},
					}},
				},
			},
		},
	}
	for _, f := range change {
		f(&deployment.Spec.Template.Spec)
	}
	l.Create(t, deployment)
}

// anywhere removes the spread constraint.
func anywhere(pod *corev1.PodSpec) { pod.TopologySpreadConstraints = nil }

// working waits until all pods of the workload are Ready, and returns them.
func working(t *testing.T, l *lab.Lab, name string, replicas int) []corev1.Pod {
	t.Helper()
	var ready []corev1.Pod
	testenv.Eventually(t, fmt.Sprintf("%d pods of %s", replicas, name), func(context.Context) error {
		ready = nil
		for _, pod := range podsOf(t, l, metav1.NamespaceDefault, name) {
			if isReady(&pod) {
				ready = append(ready, pod)
			}
		}
		if len(ready) < replicas {
			return fmt.Errorf("%d of %d are ready", len(ready), replicas)
		}
		return nil
	})
	return ready
}

func podsOf(t *testing.T, l *lab.Lab, namespace, app string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := l.Client.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// talk lets a pod of each node fetch a page from a pod of every other node.
func talk(t *testing.T, l *lab.Lab, pods []corev1.Pod) {
	t.Helper()
	byNode := map[string]corev1.Pod{}
	for _, pod := range pods {
		byNode[pod.Spec.NodeName] = pod
	}
	if len(byNode) < 2 {
		t.Errorf("all pods are on one node")
	}
	for _, from := range byNode {
		for _, to := range byNode {
			page := l.Kubectl.Run(t, "exec", from.Name, "--", "/bin/wget", "-qO-", "http://"+to.Status.PodIP)
			if strings.TrimSpace(page) != to.Name {
				t.Errorf("%s on %s fetched %q from %s on %s", from.Name, from.Spec.NodeName, page, to.Name, to.Spec.NodeName)
			}
		}
	}
}

// failures returns the events of pods that could not start without a network.
func failures(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	var list corev1.EventList
	if err := l.Client.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, event := range list.Items {
		if event.Reason == "FailedCreatePodSandBox" {
			failed = append(failed, event.InvolvedObject.Name+": "+event.Message)
		}
	}
	return failed
}

func held(key string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return testenv.HasTaint(node, key) }
}

func released(key string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return !testenv.HasTaint(node, key) }
}

func is(condition string, status corev1.ConditionStatus) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		for _, c := range node.Status.Conditions {
			if string(c.Type) == condition {
				return c.Status == status
			}
		}
		return false
	}
}

// seen reports whether the watch has returned the node.
func seen(history *lab.History, node string) func(context.Context) error {
	return func(context.Context) error {
		if len(history.Of(node)) == 0 {
			return fmt.Errorf("%s was not seen", node)
		}
		return nil
	}
}
