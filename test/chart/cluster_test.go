package chart_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/testenv"
)

// emptyCluster starts a control plane without any object of Readygate.
func emptyCluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: testenv.Binaries()})
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	c, err := testenv.Connect(plane)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// helm runs a Helm binary against a cluster.
type helm struct {
	binary, kubeconfig, chart string
}

func helmOf(t *testing.T, c *testenv.Cluster, binary string) helm {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.Config); err != nil {
		t.Fatal(err)
	}
	return helm{binary, kubeconfig, chartDir()}
}

// try installs, upgrades, rolls back or uninstalls the release.
func (h helm) try(t *testing.T, verb, values string, args ...string) error {
	t.Helper()
	_, err := h.runVerb(t, verb, values, args...)
	return err
}

// runVerb is try that also returns the output of Helm.
func (h helm) runVerb(t *testing.T, verb, values string, args ...string) (string, error) {
	t.Helper()
	command := []string{verb, release, "--namespace", namespace}
	if verb == "install" || verb == "upgrade" {
		command = append(command, h.chart, "-f", "-")
	}
	if verb == "install" {
		command = append(command, "--create-namespace")
	}
	return runHelm(t, h.binary, values, []string{"KUBECONFIG=" + h.kubeconfig}, append(command, args...)...)
}

func (h helm) run(t *testing.T, verb, values string, args ...string) {
	t.Helper()
	h.output(t, verb, values, args...)
}

// output returns the output of Helm and fails the test if Helm fails.
func (h helm) output(t *testing.T, verb, values string, args ...string) string {
	t.Helper()
	out, err := h.runVerb(t, verb, values, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInstallUpgradeAndUninstall runs Helm 4 and Helm 3, each on a cluster of its own.
func TestInstallUpgradeAndUninstall(t *testing.T) {
	t.Parallel()
	for _, binary := range helms {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			c := emptyCluster(t)
			h := helmOf(t, c, binary)
			h.run(t, "install", ci(t, "reporters"))
			t.Run("the manager has the rights it needs, and an upgrade keeps its policy", func(t *testing.T) { upgradeKeepsPolicyForNodes(t, c, h) })
			t.Run("the manager has no other rights", func(t *testing.T) { managerIsLimited(t, c) })
			t.Run("a reporter may report its condition", func(t *testing.T) { reporterIsLimited(t, c) })
			t.Run("an upgrade keeps the gates of pods", func(t *testing.T) { upgradeKeepsPolicyForPods(t, c, h) })
			t.Run("podgate is disabled while PodReadinessRules exist", func(t *testing.T) { warnsOfPodRules(t, c, h) })
			t.Run("every value", func(t *testing.T) {
				h.run(t, "upgrade", ci(t, "full"), "--set", "crds.keep=true", "--set", onlyServed(t, c))
			})
			t.Run("uninstall leaves the CRDs", func(t *testing.T) { uninstallRelease(t, c, h) })
			t.Run("install again", func(t *testing.T) { h.run(t, "install", "") })
		})
	}
}

// TestEveryValuesFileInstalls: the API server stores every field of every object of the chart.
func TestEveryValuesFileInstalls(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(chartDir(), "ci", "*-values.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("values files: %v, %v", files, err)
	}
	c := emptyCluster(t)
	h := helmOf(t, c, "helm")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), "-values.yaml")
		t.Run(name, func(t *testing.T) {
			h.run(t, "install", ci(t, name), "--set", "crds.keep=false,"+onlyServed(t, c))
			manifest, err := runHelm(t, "helm", "", []string{"KUBECONFIG=" + h.kubeconfig}, "get", "manifest", release, "--namespace", namespace)
			if err != nil {
				t.Fatal(err)
			}
			objects := 0
			decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
			for {
				applied := &unstructured.Unstructured{}
				if err := decoder.Decode(applied); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if len(applied.Object) > 0 {
					objects++
					c.WantStored(t, applied, namespace)
				}
			}
			if objects < 15 {
				t.Errorf("%d objects were compared, want all of the chart", objects)
			}
			h.run(t, "uninstall", "", "--no-hooks", "--wait")
		})
	}
}

// noMonitors disables the objects that need the CRDs of the Prometheus Operator.
const noMonitors = "monitoring.serviceMonitor.enabled=false,monitoring.podMonitor.enabled=false,monitoring.prometheusRule.enabled=false"

// onlyServed disables what the cluster of a test does not serve.
func onlyServed(t *testing.T, c *testenv.Cluster) string {
	t.Helper()
	if c.ServesMutatingPolicies(t) {
		return noMonitors
	}
	return noMonitors + ",taintNewNodes.enabled=auto" // true is without a check
}

func policyForNodesOf(t *testing.T, c *testenv.Cluster) *admissionv1.MutatingAdmissionPolicy {
	t.Helper()
	var taintNewNodes admissionv1.MutatingAdmissionPolicy
	if err := c.Client.Get(t.Context(), types.NamespacedName{Name: admission.TaintNewNodesName}, &taintNewNodes); err != nil {
		t.Fatal(err)
	}
	return &taintNewNodes
}

// cover runs a manager until the API server taints new nodes of the rule name, and no longer those of the deleted rule
// without.
func cover(t *testing.T, c *testenv.Cluster, name, without string) *v1alpha1.NodeReadinessRule {
	t.Helper()
	_, stop, err := c.RunManager()
	if err != nil {
		t.Fatal(err)
	}
	rule := testenv.Rule(name)
	if err := c.Client.Create(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	if without != "" {
		if err := c.Client.Delete(t.Context(), testenv.Rule(without)); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "deletion of the rule "+without, func(ctx context.Context) error {
			if err := c.Client.Get(ctx, types.NamespacedName{Name: without}, &v1alpha1.NodeReadinessRule{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the rule exists: %v", err)
			}
			return nil
		})
	}
	rule = c.EventuallyCovered(t, name)
	if err := stop(); err != nil {
		t.Fatalf("the manager ended with %v", err)
	}
	return rule
}

// upgradeKeepsPolicyForNodes: the manager writes the policy with the rights that the chart grants. No
// manager runs during the upgrades, so none can write the policy again.
func upgradeKeepsPolicyForNodes(t *testing.T, c *testenv.Cluster, h helm) {
	t.Helper()
	c.NeedMutatingPolicies(t)
	previous := ""
	for _, name := range []string{"first", "second", "third"} {
		rule := cover(t, c, name, previous)
		before := policyForNodesOf(t, c)
		if !admission.ReadTaintNewNodes(&before.Spec).Covers(rule.UID) {
			t.Fatalf("the policy does not contain the rule: %v", before.Spec)
		}
		h.run(t, "upgrade", ci(t, "reporters"), "--set", "manager.podAnnotations.upgrade="+name)
		if after := policyForNodesOf(t, c); !reflect.DeepEqual(after.Spec, before.Spec) {
			t.Errorf("the upgrade has changed the policy to\n%v\nfrom\n%v", after.Spec, before.Spec)
		}
		node := testenv.Node("new-"+name, testenv.Pool(name))
		c.Create(t, node)
		if !testenv.HasTaint(node, testenv.TaintKey(name)) {
			t.Errorf("after the upgrade a node is created with the taints %v", node.Spec.Taints)
		}
		previous = name
	}
}

func policyForPodsOf(t *testing.T, c *testenv.Cluster) *admissionv1.MutatingAdmissionPolicy {
	t.Helper()
	gates := admission.GateNewPodsPolicy()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(gates), gates); err != nil {
		t.Fatal(err)
	}
	return gates
}

// podRule is a PodReadinessRule that requires the node to reach the pod.
func podRule(name string) *podv1alpha1.PodReadinessRule {
	return &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       podv1alpha1.PodReadinessRuleSpec{Components: []podv1alpha1.Component{{Name: "network", Reach: &podv1alpha1.ReachComponent{}}}},
	}
}

// upgradeKeepsPolicyForPods: an upgrade keeps what a manager has written into the policy. No manager runs meanwhile.
func upgradeKeepsPolicyForPods(t *testing.T, c *testenv.Cluster, h helm) {
	t.Helper()
	c.NeedMutatingPolicies(t)
	h.run(t, "upgrade", ci(t, "podgate"))
	rule := podRule("gated")
	rule.UID = "00000000-1111-2222-3333-444444444444"
	latch, gates := admission.Latch{Image: "latch"}, policyForPodsOf(t, c)
	gates.Spec = admission.GateNewPodsSpec(latch)(admission.CompileGateNewPods([]*podrule.Rule{podrule.NewRule(rule)}, latch))
	if err := c.Client.Update(t.Context(), gates); err != nil {
		t.Fatal(err)
	}
	h.run(t, "upgrade", ci(t, "podgate"), "--set", "podgate.podAnnotations.upgrade=again")
	after := policyForPodsOf(t, c)
	if !reflect.DeepEqual(after.Spec, gates.Spec) || !admission.ReadGateNewPods(latch)(&after.Spec).Covers(rule.UID) {
		t.Errorf("the upgrade has changed the policy to\n%v\nfrom\n%v", after.Spec, gates.Spec)
	}
}

// warnsOfPodRules: Helm warns if an upgrade disables podgate while PodReadinessRules exist.
func warnsOfPodRules(t *testing.T, c *testenv.Cluster, h helm) {
	if out := h.output(t, "upgrade", "", "--set", "podgate.enabled=false"); strings.Contains(out, "podgate.enabled is false, but") {
		t.Errorf("Helm warns about rules that do not exist:\n%s", out)
	}
	rule := podRule("left")
	if err := c.Client.Create(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	if out := h.output(t, "upgrade", "", "--set", "podgate.enabled=false"); !strings.Contains(out, "podgate.enabled is false, but there are rules for pods: left.") {
		t.Errorf("Helm does not warn about the rule:\n%s", out)
	}
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
}

// managerIsLimited: the policy that the chart installs rejects other writes of the manager.
func managerIsLimited(t *testing.T, c *testenv.Cluster) {
	c.Create(t, testenv.Node("foreign", nil))
	manager := c.As(t, testenv.ManagerUser)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	testenv.Eventually(t, "the policy of the manager to be in force", func(ctx context.Context) error {
		err := manager.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}, patch, client.DryRunAll)
		return wantRefused(err, "metadata.labels")
	})
}

// reporterIsLimited: with the token of a pod of the DaemonSet, only its condition on its node can be written.
func reporterIsLimited(t *testing.T, c *testenv.Cluster) {
	const account, node = "readygate-reporter-cilium", "reported"
	c.Create(t, testenv.Node(node, nil))
	config := *c.Config
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = nil, nil, "", ""
	config.BearerToken = c.Token(t, namespace, account, c.Pod(t, namespace, account, node))
	reporter, err := client.New(&config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report := func(ctx context.Context, condition string) error {
		text := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, condition)
		return reporter.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.StrategicMergePatchType, []byte(text)))
	}
	testenv.Eventually(t, "the policy of the reporter to be in force", func(ctx context.Context) error {
		return wantRefused(report(ctx, "example.com/Other"), "cilium.io/AgentReady")
	})
	if err := report(t.Context(), "cilium.io/AgentReady"); err != nil {
		t.Errorf("the reporter cannot write its condition: %v", err)
	}
}

// wantRefused returns an error unless err is a rejection that contains these words.
func wantRefused(err error, words string) error {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), words) {
		return nil
	}
	return fmt.Errorf("got %v, want a rejection with %q", err, words)
}

// uninstallRelease skips the cleanup, which needs a node to run on.
func uninstallRelease(t *testing.T, c *testenv.Cluster, h helm) {
	h.run(t, "uninstall", "", "--no-hooks")
	for _, name := range []string{v1alpha1.CRDName, podv1alpha1.CRDName} {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := c.Client.Get(t.Context(), types.NamespacedName{Name: name}, &crd); err != nil {
			t.Errorf("the CRD %s is not kept: %v", name, err)
		}
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	if err := c.Client.List(t.Context(), &policies, client.MatchingLabels{admission.PartOfLabel: admission.PartOf}); err != nil || len(policies.Items) > 0 {
		t.Errorf("%d policies are left: %v", len(policies.Items), err)
	}
}

// takeOver are the flags with which Helm takes over existing objects. Helm 4 uses server-side apply and must also
// force the conflicts with the former field managers.
var takeOver = map[string][]string{"helm": {"--take-ownership", "--force-conflicts"}, "helm3": {"--take-ownership"}}

// TestTakeOverACluster: the cluster has the CRD of another controller of these rules, and a rule.
func TestTakeOverACluster(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t)
	data, err := crds.Files.ReadFile("readiness.node.x-k8s.io_nodereadinessrules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, binary := range helms {
		t.Run(binary, func(t *testing.T) {
			var foreign apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(data, &foreign); err != nil {
				t.Fatal(err)
			}
			foreign.Labels = map[string]string{"app.kubernetes.io/managed-by": "kustomize"}
			if err := c.Client.Create(t.Context(), &foreign); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, "the API to be served", func(ctx context.Context) error {
				return c.Client.Create(ctx, testenv.Rule("theirs"))
			})
			h := helmOf(t, c, binary)
			if err := h.try(t, "install", ""); err == nil || !strings.Contains(err.Error(), v1alpha1.CRDName) {
				t.Errorf("without %v Helm takes over the CRD of another controller: %v", takeOver[binary], err)
			}
			h.run(t, "install", "", takeOver[binary]...)
			if err := c.Client.Get(t.Context(), types.NamespacedName{Name: "theirs"}, &v1alpha1.NodeReadinessRule{}); err != nil {
				t.Errorf("the rule is lost: %v", err)
			}
			h.run(t, "uninstall", "", "--no-hooks")
			if err := c.Client.Delete(t.Context(), &foreign); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, "deletion of the CRD", func(ctx context.Context) error {
				if err := c.Client.Get(ctx, client.ObjectKeyFromObject(&foreign), &foreign); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the CRD exists: %v", err)
				}
				return nil
			})
		})
	}
}
