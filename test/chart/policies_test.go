package chart_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
)

// wantPolicies checks that these objects are rendered just as Go makes them, in a namespace.
func wantPolicies(t *testing.T, all objects, in string, want ...runtime.Object) {
	t.Helper()
	for _, obj := range want {
		wanted := moved(t, obj.(client.Object), in)
		found := false
		for _, got := range all {
			if kindOf(got) == kindOf(wanted) && got.GetName() == wanted.GetName() {
				found = true
				if !reflect.DeepEqual(got, wanted) {
					t.Errorf("%s %s is rendered as\n%v\nwant\n%v", kindOf(wanted), wanted.GetName(), got, wanted)
				}
			}
		}
		if !found {
			t.Errorf("no %s %s", kindOf(wanted), wanted.GetName())
		}
	}
}

// moved is an object that Go makes for the usual namespace as it would be for another.
func moved(t *testing.T, obj client.Object, to string) client.Object {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	other := obj.DeepCopyObject().(client.Object)
	reflect.ValueOf(other).Elem().SetZero()
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), admission.ManagerNamespace, to)), other); err != nil {
		t.Fatal(err)
	}
	return other
}

// TestPoliciesAreThoseOfTheCode in any namespace, also one that YAML takes for a number. The one that gives
// pods their gates comes with podgate, which has one namespace.
func TestPoliciesAreThoseOfTheCode(t *testing.T) {
	for _, in := range []string{admission.ManagerNamespace, "elsewhere", "123"} {
		values, want := withPodgate, admission.Installed()
		if in != admission.ManagerNamespace {
			values = ""
			want = slices.DeleteFunc(want, func(obj runtime.Object) bool { return obj.(client.Object).GetName() == admission.GateNewPodsName })
		}
		all := render(t, values, "--namespace", in)
		wantPolicies(t, all, in, want...)
		installed := 0
		for _, obj := range all {
			if strings.Contains(kindOf(obj), "AdmissionPolicy") {
				installed++
			}
		}
		if installed != len(want) {
			t.Errorf("%d policies and bindings are rendered, want %d", installed, len(want))
		}
	}
}

// TestTolerationsDoNotDependOnTaintNewNodes: whoever has nodes created without taints has DaemonSets all the
// same. Where the API is missing, neither can be.
func TestTolerationsDoNotDependOnTaintNewNodes(t *testing.T) {
	wantPolicies(t, render(t, "", "--set", "taintNewNodes.enabled=false"), admission.ManagerNamespace, admission.Tolerations(), admission.TolerationsBinding())
	for _, obj := range render(t, withPodgate, "--kube-version", "1.35.0") {
		if strings.HasPrefix(kindOf(obj), "Mutating") {
			t.Errorf("%s %s is rendered for a cluster that does not know such things", kindOf(obj), obj.GetName())
		}
	}
}

// TestReportersAreLimited to their conditions, by the policies of the code.
func TestReportersAreLimited(t *testing.T) {
	for _, in := range []string{admission.ManagerNamespace, "elsewhere", "123"} {
		all := render(t, ci(t, "reporters"), "--namespace", in)
		for account, types := range map[string][]string{
			"readygate-reporter-cilium":  {"cilium.io/AgentReady"},
			"readygate-reporter-network": {"example.com/PodNetworkReady"},
			"readygate-reporter-flannel": {"flannel.example.com/NetworkReady"},
			"readygate-reporter-gpu":     {"nvidia.com/DriverReady", "nvidia.com/ToolkitReady"},
		} {
			limits := admission.Reporter{Namespace: in, Account: account, Types: types}
			wantPolicies(t, all, in, limits.Policy(), limits.Binding())
		}
	}
}

// TestProtectionsAreOff until they are switched on.
func TestProtectionsAreOff(t *testing.T) {
	const reporter = "reporters: [" + a + "]\n"
	reserved := admission.Reporter{Namespace: namespace, Account: "readygate-reporter-a", Types: []string{"example.com/A"}}
	wantPolicies(t, render(t, reporter+"protections: {completions: true, conditions: true}\npodgate: {reserveGates: true}"), namespace,
		admission.CompletionsBinding(), reserved.Reserved(), reserved.ReservedBinding(), admission.ReservedGates(), admission.ReservedGatesBinding())
	for _, binding := range each[*admissionv1.ValidatingAdmissionPolicyBinding](render(t, reporter)) {
		if binding.Spec.PolicyName == admission.CompletionsName || binding.Spec.PolicyName == reserved.Reserved().Name || binding.Spec.PolicyName == admission.ReservedGatesName {
			t.Errorf("%s is bound though nobody asked", binding.Spec.PolicyName)
		}
	}
}

// TestHoldRecordsAreProtected unless the values say otherwise.
func TestHoldRecordsAreProtected(t *testing.T) {
	wantPolicies(t, render(t, ""), namespace, admission.Holds(), admission.HoldsBinding())
	for _, binding := range each[*admissionv1.ValidatingAdmissionPolicyBinding](render(t, "protections: {holds: false}")) {
		if binding.Spec.PolicyName == admission.HoldsName {
			t.Errorf("%s is bound though it is switched off", binding.Spec.PolicyName)
		}
	}
}

// TestTaintNewNodesPolicyWhereTheClusterHasTheAPI, unless the values say otherwise. A cluster tells Helm
// its kinds; without a cluster the version decides.
func TestTaintNewNodesPolicyWhereTheClusterHasTheAPI(t *testing.T) {
	const group = "admissionregistration.k8s.io/v1/"
	for name, test := range map[string]struct {
		values string
		args   []string
		want   bool
	}{
		"a new version":              {"", []string{"--kube-version", "v1.36.0"}, true},
		"a vendor's version":         {"", []string{"--kube-version", "v1.36.2-eks-1"}, true},
		"an old version":             {"", []string{"--kube-version", "v1.35.9"}, false},
		"a cluster with the API":     {"", []string{"--kube-version", "v1.36.0", "-a", group + "ValidatingAdmissionPolicy," + group + "MutatingAdmissionPolicy"}, true},
		"a cluster without the API":  {"", []string{"--kube-version", "v1.36.0", "-a", group + "ValidatingAdmissionPolicy"}, false},
		"switched on":                {"taintNewNodes: {enabled: true}", []string{"--kube-version", "v1.30.0"}, true},
		"switched on on the shell":   {"", []string{"--kube-version", "v1.30.0", "--set-string", "taintNewNodes.enabled=true"}, true},
		"switched off":               {"taintNewNodes: {enabled: false}", []string{"--kube-version", "v1.37.0"}, false},
		"switched off in the shell":  {"", []string{"--set", "taintNewNodes.enabled=false"}, false},
		"the oldest version we take": {"", []string{"--kube-version", "v1.30.0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := render(t, test.values, test.args...)
			policies := slices.ContainsFunc(each[*admissionv1.MutatingAdmissionPolicy](all), func(p *admissionv1.MutatingAdmissionPolicy) bool { return p.Name == admission.TaintNewNodesName })
			bindings := slices.ContainsFunc(each[*admissionv1.MutatingAdmissionPolicyBinding](all), func(b *admissionv1.MutatingAdmissionPolicyBinding) bool { return b.Name == admission.TaintNewNodesName })
			if policies != test.want || bindings != test.want {
				t.Errorf("policy: %v, binding: %v", policies, bindings)
			}
		})
	}
}
