package demo_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/testenv"
)

const foreignTaint = "example.com/foreign"

// theirs is a cluster of somebody else: its scheduler and controllers run, and it has a node
// that every rule for workers would select.
func theirs(t *testing.T, c *testenv.Cluster) (kubeconfig string, node *corev1.Node) {
	t.Helper()
	for _, do := range []func(context.Context) error{c.StartScheduler, c.StartControllerManager} {
		if err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	node = testenv.Node("worker-1", map[string]string{"node-role.kubernetes.io/worker": "", "example.com/pool": "workers"}, testenv.WithTaint(foreignTaint))
	c.Create(t, node)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.Config); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, node
}

// bare is a cluster without Readygate.
func bare(t *testing.T) *testenv.Cluster {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: testenv.Binaries()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	c, err := testenv.Connect(plane)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ofKubernetes are objects that the controllers of Kubernetes make in their own time.
func ofKubernetes(kind, namespace, name string) bool {
	switch kind {
	case "configmaps":
		return name == "kube-root-ca.crt"
	case "serviceaccounts":
		return namespace == "kube-system" || name == "default"
	case "clustertrustbundles":
		return strings.HasPrefix(name, "kubernetes.io:")
	}
	return false
}

// objects names every object of the cluster but those of Kubernetes itself, and events, which
// go by themselves.
func objects(t *testing.T, c *testenv.Cluster) []string {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := found.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if resource.Kind == "Event" || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			group, version, _ := strings.Cut(list.GroupVersion, "/")
			if version == "" {
				group, version = "", group
			}
			items, err := all.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource.Name}).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("listing %s: %v", resource.Name, err)
			}
			for _, item := range items.Items {
				if ofKubernetes(resource.Name, item.GetNamespace(), item.GetName()) {
					continue
				}
				names[fmt.Sprintf("%s %s/%s", resource.Name, item.GetNamespace(), item.GetName())] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// unchanged fails unless there are the objects of before, and no others.
func unchanged(t *testing.T, c *testenv.Cluster, before []string) {
	t.Helper()
	after := objects(t, c)
	for _, name := range after {
		if !slices.Contains(before, name) {
			t.Errorf("left in the cluster: %s", name)
		}
	}
	for _, name := range before {
		if !slices.Contains(after, name) {
			t.Errorf("gone from the cluster: %s", name)
		}
	}
}

// untouched fails if the node is not as it was, but for what Kubernetes itself does to it.
func untouched(t *testing.T, c *testenv.Cluster, before *corev1.Node) {
	t.Helper()
	var after corev1.Node
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(before), &after); err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || !maps.Equal(ourKeys(&after), ourKeys(before)) {
		t.Errorf("the node is %v, was %v", ourKeys(&after), ourKeys(before))
	}
}

// ourKeys are labels, annotations and taints that are not of Kubernetes itself.
func ourKeys(node *corev1.Node) map[string]string {
	all := map[string]string{}
	for key, value := range node.Labels {
		all["label "+key] = value
	}
	for key, value := range node.Annotations {
		if !strings.Contains(key, "node.alpha.kubernetes.io/") {
			all["annotation "+key] = value
		}
	}
	for _, taint := range node.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			all["taint "+taint.Key] = string(taint.Effect)
		}
	}
	return all
}

func TestAnExistingClusterIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	c := bare(t)
	kubeconfig, node := theirs(t, c)
	before := objects(t, c)

	t.Run("without a yes nothing is done", func(t *testing.T) {
		start(t, "cni-guide", "KUBECONFIG="+kubeconfig).ends(2, "DEMO_CLUSTER=yes", "demo-worker-1", "CRDs nodereadinessrules", "demo-network-readiness-rule")
		unchanged(t, c, before)
	})
	t.Run("another demo is not disturbed", func(t *testing.T) {
		other := testenv.Node("demo-worker-1", map[string]string{demo.SimulatedLabel: "true"})
		c.Create(t, other)
		start(t, "cni-guide", "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes").ends(1, "another demo plays there", "make demo DEMO_CLUSTER=clean")
		untouched(t, c, other)
	})
	t.Run("the guide is played and everything taken back", func(t *testing.T) {
		start(t, "cni-guide", "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes").ends(0, "What was proven: The CNI guide", "demo-worker-1 is released", "Nothing of the demo is left")
		unchanged(t, c, before)
		untouched(t, c, node)
	})
	t.Run("what a killed demo left is taken back on demand", func(t *testing.T) {
		p := start(t, short(t, "- deploy: {name: shop, pods: 2}\n- pause: 10m\n"), "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes")
		p.says("demo-worker-1 is held")
		p.kill()
		start(t, "cni-guide", "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=clean").ends(0, "Node demo-worker-1", "Nothing of a demo is left")
		unchanged(t, c, before)
		untouched(t, c, node)
	})
	t.Run("a story about pods is played and everything taken back", func(t *testing.T) {
		start(t, shortOfPods(t), "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes").ends(0, "the rule demo-network, for these pods only", "✓ 2 pods running, 2 pods with a gate, 2 pods with a closed gate", "Nothing of the demo is left")
		unchanged(t, c, before)
		untouched(t, c, node)
	})
	t.Run("also after Ctrl-C", func(t *testing.T) {
		p := start(t, short(t, "- pause: 10m\n"), "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes")
		p.says("demo-worker-1 is held")
		p.interrupt()
		p.ends(130, "Nothing of the demo is left")
		unchanged(t, c, before)
		untouched(t, c, node)
	})
}

func TestAClusterWithReadygateIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, node := theirs(t, c)
	// Theirs has the taint, the label and the condition of the guide's.
	rule := testenv.Rule("network-readiness-rule", func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.Taint.Key = "readiness.k8s.io/NetworkReady"
		r.Spec.NodeSelector = v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"node-role.kubernetes.io/worker": ""}}
	})
	c.Create(t, rule)

	t.Run("rules that nobody enforces are not enforced by a demo", func(t *testing.T) {
		before := objects(t, c)
		start(t, "cni-guide", "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes").ends(1, "there are 1 rules, and no manager leads")
		unchanged(t, c, before)
		untouched(t, c, node)
	})

	c.StartProcess(t, testenv.ManagerUser, "--leader-elect", "--leader-election-namespace", testenv.ManagerNamespace)
	held := c.EventuallyNode(t, node.Name, "held by their rule", func(n *corev1.Node) bool { return testenv.HasTaint(n, rule.Spec.Taint.Key) })
	rule = c.EventuallyRule(t, rule.Name, "enforced", testenv.Enforced)
	before := objects(t, c)
	start(t, "cni-guide", "KUBECONFIG="+kubeconfig, "DEMO_CLUSTER=yes").ends(0, "The manager that leads there enforces it", "What was proven: The CNI guide", "Nothing of the demo is left")
	unchanged(t, c, before)
	untouched(t, c, held)
	var after v1alpha1.NodeReadinessRule
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), &after); err != nil {
		t.Fatal(err)
	}
	if after.Generation != rule.Generation || *after.Status.Summary != *rule.Status.Summary || !testenv.Enforced(&after) {
		t.Errorf("their rule is %+v, was %+v", after.Status, rule.Status)
	}
}
