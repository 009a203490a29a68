package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/readygate/readygate/internal/testenv"
)

// TestPlainManifestsApply: kubectl installs with install.yaml only; uninstall.yaml adds the
// cleanup to it.
func TestPlainManifestsApply(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t)
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(testenv.Root(), "hack", "chart", "plain"), tool(t, "helm"), dir, "registry.example.com")
	cmd.Dir = testenv.Root()
	cmd.Env = append(os.Environ(), asServed(t, c)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	texts := map[string]string{}
	for _, name := range []string{"install.yaml", "uninstall.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(data)
		if strings.Contains(texts[name], "helm.sh") || strings.Contains(texts[name], "Helm") {
			t.Errorf("%s mentions Helm", name)
		}
	}
	installed, cleanup := decode(t, texts["install.yaml"]), decode(t, texts["uninstall.yaml"])
	if first := installed[0]; kindOf(first) != "Namespace" || get[*corev1.Namespace](t, installed, namespace).Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("the first object is %s %s", kindOf(first), first.GetName())
	}
	if len(jobs(installed)) > 0 {
		t.Error("install.yaml contains the cleanup Job")
	}
	if get[*batchv1.Job](t, cleanup, "readygate-cleanup").Namespace != namespace {
		t.Errorf("the cleanup Job is not in the namespace %s", namespace)
	}

	k := c.Kubectl(t)
	k.Strict = true
	for _, name := range []string{"install.yaml", "install.yaml", "uninstall.yaml"} {
		k.Run(t, "apply", "--server-side", "-f", filepath.Join(dir, name))
	}
	k.Run(t, "delete", "-f", filepath.Join(dir, "uninstall.yaml"))
	if c.ServesMutatingPolicies(t) {
		applyKeepsPolicyForNodes(t, c, k, filepath.Join(dir, "install.yaml"))
	}
}

// asServed returns the environment of hack/chart/plain for this cluster.
func asServed(t *testing.T, c *testenv.Cluster) []string {
	t.Helper()
	env := []string{"KUBE_VERSION=v" + c.ServerVersion(t).String()}
	version, err := c.MutatingVersion()
	if meta.IsNoMatchError(err) {
		return env
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "API_VERSIONS=admissionregistration.k8s.io/"+version+"/MutatingAdmissionPolicy")
}

// applyKeepsPolicyForNodes: applying the file again without --force-conflicts keeps the policy that a manager has
// written, and applies everything else.
func applyKeepsPolicyForNodes(t *testing.T, c *testenv.Cluster, k *testenv.Kubectl, file string) {
	cover(t, c, "rule", "")
	before := policyForNodesOf(t, c)
	k.Run(t, "-n", namespace, "delete", "poddisruptionbudget", "readygate-manager")
	out, err := k.Output(t.Context(), "apply", "--server-side", "-f", file)
	if err == nil || !strings.Contains(out, "conflicts with \"chart.test\"") {
		t.Errorf("apply over the manager's policy: %v, %s; want a conflict", err, out)
	}
	if after := policyForNodesOf(t, c); !reflect.DeepEqual(after.Spec, before.Spec) {
		t.Errorf("apply has changed the policy to\n%v\nfrom\n%v", after.Spec, before.Spec)
	}
	k.Run(t, "-n", namespace, "get", "poddisruptionbudget", "readygate-manager")
}
