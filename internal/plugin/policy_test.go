package plugin_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/podrule"
)

// stored is a manifest as kubectl get -o yaml writes it.
func stored(manifest, name, uid, created string) string {
	return strings.Replace(manifest, "metadata: {name: network}", `metadata: {name: `+name+`, uid: "`+uid+`", creationTimestamp: "`+created+`", finalizers: [`+v1alpha1.Finalizer+`]}`, 1)
}

func parsed[T any](t *testing.T, text string) *T {
	t.Helper()
	it := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), it); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return it
}

func TestPolicyOfFilesIsWhatTheRulesCompileTo(t *testing.T) {
	home(t)
	const image = "registry.example.com/latch:1"
	older := stored(strings.Replace(rule, "/NetworkReady", "/Older", 2), "older", "1111", "2026-01-01T00:00:00Z")
	younger := stored(rule, "younger", "2222", "2026-01-02T00:00:00Z")
	forPods := stored(podRule, "pods", "3333", "2026-01-03T00:00:00Z")
	rules := []*v1alpha1.NodeReadinessRule{parsed[v1alpha1.NodeReadinessRule](t, older), parsed[v1alpha1.NodeReadinessRule](t, younger)}
	podRules := []*podv1alpha1.PodReadinessRule{parsed[podv1alpha1.PodReadinessRule](t, forPods)}

	code, out, errOut := run(t, strings.Join([]string{older, younger, forPods}, "---\n"), "policy", "-f", "-", "--latch-image", image)
	if code != 0 || errOut != "" {
		t.Fatalf("code %d: %s", code, errOut)
	}
	documents := strings.Split(out, "---\n")
	if len(documents) != 2 || !strings.Contains(documents[0], "# Rules: older, younger, pods\n") {
		t.Fatalf("got:\n%s", out)
	}
	taintNewNodes, gates := admission.TaintNewNodesPolicy(), admission.GateNewPodsPolicy()
	taintNewNodes.Spec = admission.TaintNewNodesSpec(admission.CompileTaintNewNodes(noderule.NewRulebook(rules).Rules()))
	latch := admission.Latch{Image: image}
	gates.Spec = admission.GateNewPodsSpec(latch)(admission.CompileGateNewPods(podrule.NewRules(podRules), latch))
	for i, want := range []*admissionv1.MutatingAdmissionPolicy{taintNewNodes, gates} {
		if got := parsed[admissionv1.MutatingAdmissionPolicy](t, documents[i]); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("got\n%v\nwant\n%v", got, want)
		}
	}
	if _, again, _ := run(t, strings.Join([]string{forPods, younger, older}, "---\n"), "policy", "-f", "-", "--latch-image", image); again != out {
		t.Errorf("in another order it prints\n%s\nnot\n%s", again, out)
	}
	_, beta, _ := run(t, strings.Join([]string{older, younger, forPods}, "---\n"), "policy", "-f", "-", "--latch-image", image, "--policy-version=v1beta1")
	if want := strings.ReplaceAll(out, "apiVersion: admissionregistration.k8s.io/v1\n", "apiVersion: admissionregistration.k8s.io/v1beta1\n"); beta != want || beta == out {
		t.Errorf("with --policy-version=v1beta1 it prints\n%s\nwant\n%s", beta, want)
	}
	if _, without, _ := run(t, older, "policy", "-f", "-"); strings.Contains(without, admission.GateNewPodsName) || !strings.Contains(without, admission.TaintNewNodesName) {
		t.Errorf("without rules for pods it prints\n%s", without)
	}
}

func TestPolicyWarnsOfRulesThatItDoesNotContain(t *testing.T) {
	home(t)
	bootstrap := stored(strings.Replace(rule, "continuous", "bootstrap-only", 1), "new", "1111", "2026-01-01T00:00:00Z")
	code, out, errOut := run(t, bootstrap, "policy", "-f", "-")
	if code != 0 || !strings.Contains(errOut, "does not contain rule new: the manager has not set its status.takenOverAt yet") || !strings.Contains(out, "# Rules: none\n") {
		t.Errorf("code %d\n%s\n%s", code, out, errOut)
	}
	unseen := strings.Replace(stored(rule, "unseen", "1111", "2026-01-01T00:00:00Z"), v1alpha1.Finalizer, "example.com/other", 1)
	seen := stored(strings.Replace(rule, "/NetworkReady", "/Seen", 2), "seen", "2222", "2026-01-02T00:00:00Z")
	if code, out, errOut := run(t, unseen+"---\n"+seen, "policy", "-f", "-"); code != 0 || !strings.Contains(errOut, "does not contain rule unseen: the manager has not added its finalizer") || !strings.Contains(out, "# Rules: seen\n") || strings.Contains(out, "1111") {
		t.Errorf("without a finalizer: code %d\n%s\n%s", code, out, errOut)
	}
	taken := bootstrap + "status: {takenOverAt: \"2026-01-01T00:00:01Z\"}\n"
	if _, out, errOut := run(t, taken, "policy", "-f", "-"); errOut != "" || !strings.Contains(out, "# Rules: new\n") {
		t.Errorf("taken over: %s\n%s", out, errOut)
	}
}

// A name in a file can be any text, and the output is applied by an administrator.
func TestNamesCannotEndTheCommentOfThePolicy(t *testing.T) {
	home(t)
	hostile := strings.Replace(rule, "metadata: {name: network}", `metadata: {name: "x\nkind: Secret\n---\r\u2028a: b", uid: "1111"}`, 1)
	_, out, _ := run(t, hostile, "policy", "-f", "-")
	documents := strings.Split(out, "\n---\n")
	if got := parsed[admissionv1.MutatingAdmissionPolicy](t, documents[0]); len(documents) != 1 || got.Name != admission.TaintNewNodesName {
		t.Errorf("got:\n%s", out)
	}
}
