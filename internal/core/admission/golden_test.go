package admission_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenRules are rules of every kind, so that every expression that a rule can become is
// visible in a review of a change.
func goldenRules() []*v1alpha1.NodeReadinessRule {
	return rules(
		rule("network"),
		rule("every-operator", taintKey("readiness.k8s.io/EveryOperator"), selectsBy(
			expression("example.com/pool", "In", "b", "a"), expression("example.com/gpu", "NotIn", "", "none"),
			expression("example.com/ready", "Exists"), expression("example.com/excluded", "DoesNotExist"))),
		rule("labels-and-expressions", taintKey("readiness.k8s.io/Both"), func(r *v1alpha1.NodeReadinessRule) {
			r.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"kubernetes.io/os": "linux", "example.com/empty": ""}
			r.Spec.NodeSelector.MatchExpressions = []v1alpha1.NodeSelectorRequirement{expression("kubernetes.io/os", "Exists")}
		}),
		rule("once", taintKey("readiness.k8s.io/Once"), bootstrapOnly),
		rule("once-taken-over", taintKey("readiness.k8s.io/OnceTakenOver"), bootstrapOnly, takenOverAt(noon)),
		rule("any-of", taintKey("readiness.k8s.io/AnyOf"), anyOf, requires(
			requirement("example.com/A", True), withDefault(requirement("example.com/B", False), True), requirement("example.com/C", Unknown))),
		rule("all-of", taintKey("readiness.k8s.io/AllOf"), requires(requirement("example.com/A", True), withDefault(requirement("example.com/B", False), False))),
		rule("evicts", taintEffect(corev1.TaintEffectNoExecute)),
		rule("prefers", taintEffect(corev1.TaintEffectPreferNoSchedule), taintValue("")),
		rule("for-autoscalers", taintKey("startup-taint.cluster-autoscaler.kubernetes.io/network")),
		rule("odd", taintKey("readiness.k8s.io/Odd"), requires(requirement("\"'\\ \n\x00\u00e9\U0001f600${}", True))),
	)
}

// Every expression of every policy is golden: a change of one is a change of what an API
// server does to nodes and pods, and is to be read as such.
func TestPoliciesAreGolden(t *testing.T) {
	filled := admission.TaintNewNodesPolicy()
	filled.Spec = admission.TaintNewNodesSpec(taintNewNodes(goldenRules()...))
	golden(t, "taint-new-nodes-filled.yaml", filled)
	golden(t, "gate-new-pods-filled.yaml", filledGates())
	for _, object := range everyObject() {
		golden(t, fileOf(t, object), object)
	}
}

// everyObject are the policies and bindings of an installation and of reporters, and those
// that an administrator may apply in addition.
func everyObject() []runtime.Object {
	objects := append(admission.Installed(), admission.CompletionsBinding())
	return append(objects, reporter.Policy(), reporter.Binding(), reporter.Reserved(), reporter.ReservedBinding(), admission.ReservedGates(), admission.ReservedGatesBinding(), admission.OwnNode("kube-system", "calico-node"), admission.OwnNodeBinding("kube-system", "calico-node"))
}

// fileOf is as in taint-new-nodes.yaml or taint-new-nodes-binding.yaml.
func fileOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	named, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(named.GetName(), "readygate-")
	switch object.(type) {
	case *admissionv1.MutatingAdmissionPolicyBinding, *admissionv1.ValidatingAdmissionPolicyBinding:
		name += "-binding"
	}
	return name + ".yaml"
}

func golden(t *testing.T, file string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; read the difference after go test ./internal/core/admission -update. Got:\n%s", path, got)
	}
}

func TestEveryGoldenFileIsOfAPolicy(t *testing.T) {
	want := map[string]bool{"taint-new-nodes-filled.yaml": true, "gate-new-pods-filled.yaml": true}
	for _, object := range everyObject() {
		want[fileOf(t, object)] = true
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !want[filepath.Base(file)] {
			t.Errorf("%s is of nothing that exists", file)
		}
	}
}
