package examples_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/testenv"
)

const (
	networkTaint = "readiness.k8s.io/NetworkReady"
	workerLabel  = "node-role.kubernetes.io/worker"
	// felix is the address of Calico's health endpoint, which the guides' reporters probe.
	felix = "127.0.0.1:9099"
)

// variableIn returns the value of a variable in a manifest, or "" if the file does not exist.
func variableIn(t *testing.T, path, name string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	found := regexp.MustCompile(`name: ` + name + `\s+value: "([^"]+)"`).FindSubmatch(data)
	if err != nil || found == nil {
		t.Fatalf("%s has no %s: %v", path, name, err)
	}
	return string(found[1])
}

// TestGuide runs the commands of both guides, up to the third step of "Verification". There are no kubelets: the
// pods of the DaemonSets are scheduled but not started. Instead the test runs the reporter's binary with the
// variables and the token of such a pod.
func TestGuide(t *testing.T) {
	for _, guide := range []struct{ name, dir, daemonSet, container, condition string }{
		{"daemonset", "cni-readiness", "cni-reporter", "cni-status-patcher", "projectcalico.org/CalicoReady"},
		{"sidecar", "cni-readiness/sidecar", "calico-node", "cni-status-patcher", "network.k8s.io/CalicoReady"},
	} {
		t.Run(guide.name, func(t *testing.T) {
			c := cluster(t)
			k := c.Kubectl(t)
			k.Strict = true
			follow(t, c, k, filepath.Join(dir, guide.dir), guide.daemonSet, guide.container, guide.condition)
		})
	}
}

func follow(t *testing.T, c *testenv.Cluster, k *testenv.Kubectl, dir, daemonSet, container, condition string) {
	// "Test scripts"
	k.Script(t, dir, "-c", "kubectl apply -f network-readiness-rule.yaml")
	k.Run(t, "wait", "--timeout=90s", "--for=condition=Enforced", "nrr/network-readiness-rule")
	k.Script(t, dir, "apply-calico.sh", calico(t, strings.HasSuffix(dir, "sidecar")))
	if strings.HasSuffix(dir, "sidecar") {
		wantSidecarLast(t, c, container)
		k.Script(t, dir, "apply-calico.sh", calico(t, true))
		wantSidecarLast(t, c, container)
	}
	cleanUp(t, k, dir)

	// "To test this, add a new node to the cluster."
	node := join(t, c, "worker-"+daemonSet)
	app := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app-" + daemonSet, Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	c.Create(t, app)

	// 1. "Immediately upon joining, the node should have the taint".
	if !testenv.HasTaint(node, networkTaint) {
		t.Fatalf("the node is created with the taints %v", node.Spec.Taints)
	}

	// 2. "You will initially see it as False or missing. Once Calico starts, the reporter will update it to True."
	pod := podOn(t, c, daemonSet, node.Name)
	run(t, c, pod, container)
	c.EventuallyNode(t, node.Name, "reported as not ready", statusIs(condition, corev1.ConditionFalse))
	if n := nodeNamed(t, c, node.Name); !testenv.HasTaint(n, networkTaint) || scheduled(t, c, app) {
		t.Errorf("before Calico runs, the node has the taints %v, and the app is scheduled: %v", n.Spec.Taints, scheduled(t, c, app))
	}
	startFelix(t)
	c.EventuallyNode(t, node.Name, "reported as ready", statusIs(condition, corev1.ConditionTrue))

	// 3. "The Node Readiness Controller will remove the taint, and workloads will be scheduled."
	c.EventuallyNode(t, node.Name, "released", func(n *corev1.Node) bool { return !testenv.HasTaint(n, networkTaint) })
	testenv.Eventually(t, "the app to be scheduled", func(context.Context) error {
		if !scheduled(t, c, app) {
			return errors.New("the pod has no node")
		}
		return nil
	})
}

// The commands of the example's page run as written.
func TestCommandsOfTheGuideAsWritten(t *testing.T) {
	c := cluster(t)
	k := c.Kubectl(t)
	k.Strict = true
	cleanUp(t, k, filepath.Join(dir, "cni-readiness"))
	commands := testenv.PageCommands(t, "examples/cni-readiness/README.md", "calico-guide")
	k.Script(t, testenv.Root(), "-ec", "export CALICO_MANIFEST="+calico(t, false)+"\n"+strings.Join(commands, "\n"))
}

// cleanUp deletes the objects of a guide when the test ends.
func cleanUp(t *testing.T, k *testenv.Kubectl, dir string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		for _, args := range [][]string{
			{"delete", "daemonset", "-n", "kube-system", "--all"}, {"delete", "nrr", "network-readiness-rule"},
			{"delete", "-f", filepath.Join(dir, "calico-rbac-node-status-patch-role.yaml")}, {"delete", "nodes", "--all"}, {"delete", "pods", "--all", "--force"},
		} {
			_, _ = k.Try(ctx, args...)
		}
	})
}

// wantSidecarLast checks the order of the containers, in which kubelets start them: Calico before its sidecar.
func wantSidecarLast(t *testing.T, c *testenv.Cluster, sidecar string) {
	t.Helper()
	var calico appsv1.DaemonSet
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "calico-node"}, &calico); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, container := range calico.Spec.Template.Spec.Containers {
		names = append(names, container.Name)
	}
	if !slices.Equal(names, []string{"calico-node", sidecar}) {
		t.Errorf("the containers of calico-node are %v", names)
	}
}

// calico returns the URL or the path of Calico's manifest.
func calico(t *testing.T, atURL bool) string {
	t.Helper()
	path, err := filepath.Abs("testdata/calico.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !atURL {
		return path
	}
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(path))))
	t.Cleanup(server.Close)
	return server.URL + "/calico.yaml"
}

// join creates a node as a kubelet with the guide's --register-with-taints does, and labels it as an administrator does.
func join(t *testing.T, c *testenv.Cluster, name string) *corev1.Node {
	t.Helper()
	node := testenv.Node(name, map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}, testenv.WithTaint(networkTaint))
	node.Spec.Taints[0].Value = "pending"
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(), Reason: "KubeletReady"}}
	c.Create(t, node)
	created := node.DeepCopy()
	c.Patch(t, node, func() { node.Labels[workerLabel] = "" })
	c.EventuallyNode(t, name, "ready", func(n *corev1.Node) bool { // the node lifecycle controller removes the taint that admission added
		for _, taint := range n.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return false
			}
		}
		return true
	})
	return created
}

// podOn returns the DaemonSet's pod on the node.
func podOn(t *testing.T, c *testenv.Cluster, daemonSet, node string) *corev1.Pod {
	t.Helper()
	var found corev1.Pod
	testenv.Eventually(t, "the pod of "+daemonSet+" to be scheduled to "+node, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace("kube-system")); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			owner := metav1.GetControllerOf(&pod)
			if pod.Spec.NodeName == node && owner != nil && owner.Name == daemonSet && pod.DeletionTimestamp == nil {
				found = pod
				return nil
			}
		}
		return fmt.Errorf("%d pods, none of the DaemonSet on the node", len(pods.Items))
	})
	return &found
}

// run runs the reporter's binary with the variables that a kubelet would set for the container and the token that it
// would mount.
func run(t *testing.T, c *testenv.Cluster, pod *corev1.Pod, container string) {
	t.Helper()
	var env []string
	for _, one := range pod.Spec.Containers {
		if one.Name != container {
			continue
		}
		for _, variable := range one.Env {
			value := variable.Value
			if variable.ValueFrom != nil && variable.ValueFrom.FieldRef.FieldPath == "spec.nodeName" {
				value = pod.Spec.NodeName
			}
			env = append(env, variable.Name+"="+value)
		}
	}
	if len(env) == 0 {
		t.Fatalf("pod %s has no container %s", pod.Name, container)
	}
	kubeconfig, _ := c.TokenKubeconfig(t, c.Token(t, pod.Namespace, pod.Spec.ServiceAccountName, pod))
	testenv.StartReporter(t, kubeconfig, env)
}

// startFelix starts a server in place of Calico's health endpoint.
func startFelix(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", felix)
	if err != nil {
		t.Fatalf("the guide's endpoint cannot be served here: %v", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readiness", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

func statusIs(condition string, status corev1.ConditionStatus) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		for _, one := range node.Status.Conditions {
			if string(one.Type) == condition {
				return one.Status == status
			}
		}
		return false
	}
}

func nodeNamed(t *testing.T, c *testenv.Cluster, name string) *corev1.Node {
	t.Helper()
	var node corev1.Node
	if err := c.Client.Get(t.Context(), types.NamespacedName{Name: name}, &node); err != nil {
		t.Fatal(err)
	}
	return &node
}

func scheduled(t *testing.T, c *testenv.Cluster, pod *corev1.Pod) bool {
	t.Helper()
	var now corev1.Pod
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), &now); err != nil {
		t.Fatal(err)
	}
	return now.Spec.NodeName != ""
}
