package chart_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
)

// wantPolicies checks that these objects are rendered exactly as Go builds them, for a namespace.
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

// moved converts an object that Go builds for the default namespace to another namespace.
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

// TestPoliciesAreThoseOfTheCode: in any namespace, also one that YAML reads as a number. The policy that gates
// pods is installed with podgate, which has one namespace.
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

// TestTolerationsDoNotDependOnTaintNewNodes: DaemonSets need tolerations also if nodes are created without taints.
// Without the MutatingAdmissionPolicy API the chart renders neither policy.
func TestTolerationsDoNotDependOnTaintNewNodes(t *testing.T) {
	wantPolicies(t, render(t, "", "--set", "taintNewNodes.enabled=false"), admission.ManagerNamespace, admission.Tolerations(), admission.TolerationsBinding())
	for _, obj := range render(t, withPodgate, "--kube-version", "1.35.0") {
		if strings.HasPrefix(kindOf(obj), "Mutating") {
			t.Errorf("%s %s is rendered for a cluster without this API", kindOf(obj), obj.GetName())
		}
	}
}

// TestReportersAreLimited: the policies of the code limit each reporter to its conditions.
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

// TestProtectionsAreOff: the optional protections have no binding by default.
func TestProtectionsAreOff(t *testing.T) {
	const reporter = "reporters: [" + a + "]\n"
	reserved := admission.Reporter{Namespace: namespace, Account: "readygate-reporter-a", Types: []string{"example.com/A"}}
	wantPolicies(t, render(t, reporter+"protections: {completions: true, conditions: true}\npodgate: {reserveGates: true}"), namespace,
		admission.CompletionsBinding(), reserved.Reserved(), reserved.ReservedBinding(), admission.ReservedGates(), admission.ReservedGatesBinding())
	for _, binding := range each[*admissionv1.ValidatingAdmissionPolicyBinding](render(t, reporter)) {
		if binding.Spec.PolicyName == admission.CompletionsName || binding.Spec.PolicyName == reserved.Reserved().Name || binding.Spec.PolicyName == admission.ReservedGatesName {
			t.Errorf("%s has a binding by default", binding.Spec.PolicyName)
		}
	}
}

// TestHoldRecordsAreProtected: the policy has a binding unless protections.holds is false.
func TestHoldRecordsAreProtected(t *testing.T) {
	wantPolicies(t, render(t, ""), namespace, admission.Holds(), admission.HoldsBinding())
	for _, binding := range each[*admissionv1.ValidatingAdmissionPolicyBinding](render(t, "protections: {holds: false}")) {
		if binding.Spec.PolicyName == admission.HoldsName {
			t.Errorf("%s has a binding with protections.holds false", binding.Spec.PolicyName)
		}
	}
}

// TestTaintNewNodesPolicyWhereTheClusterHasTheAPI: by default the policy is rendered in the version that the cluster serves.
// Helm reads the served kinds from the cluster; without a cluster the Kubernetes version decides.
func TestTaintNewNodesPolicyWhereTheClusterHasTheAPI(t *testing.T) {
	const validating, v1, v1beta1 = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
	for name, test := range map[string]struct {
		values string
		args   []string
		want   string // the version; empty without the policy
	}{
		"a new version":             {"", []string{"--kube-version", "v1.36.0"}, "v1"},
		"a vendor's version":        {"", []string{"--kube-version", "v1.36.2-eks-1"}, "v1"},
		"an old version":            {"", []string{"--kube-version", "v1.35.9"}, ""},
		"a cluster with v1":         {"", []string{"--kube-version", "v1.36.0", "-a", validating + "," + v1}, "v1"},
		"a cluster with both":       {"", []string{"--kube-version", "v1.36.0", "-a", validating + "," + v1 + "," + v1beta1}, "v1"},
		"a cluster with v1beta1":    {"", []string{"--kube-version", "v1.35.0", "-a", validating + "," + v1beta1}, "v1beta1"},
		"a cluster without the API": {"", []string{"--kube-version", "v1.36.0", "-a", validating}, ""},
		"enabled":                   {"taintNewNodes: {enabled: true}", []string{"--kube-version", "v1.33.0"}, "v1"},
		"enabled with v1beta1":      {"taintNewNodes: {enabled: true}", []string{"--kube-version", "v1.34.0", "-a", v1beta1}, "v1beta1"},
		"enabled by --set-string":   {"", []string{"--kube-version", "v1.33.0", "--set-string", "taintNewNodes.enabled=true"}, "v1"},
		"disabled":                  {"taintNewNodes: {enabled: false}", []string{"--kube-version", "v1.37.0"}, ""},
		"disabled by --set":         {"", []string{"--set", "taintNewNodes.enabled=false"}, ""},
		"the oldest version":        {"", []string{"--kube-version", "v1.33.0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMutating(t, render(t, test.values, test.args...), admission.TaintNewNodesName, test.want)
		})
	}
}

// wantMutating checks the version of a MutatingAdmissionPolicy and its binding; empty means that they are not rendered.
func wantMutating(t *testing.T, all objects, name, version string) {
	t.Helper()
	got, want := map[string]string{}, map[string]string{}
	for _, obj := range all {
		if kind := obj.GetObjectKind().GroupVersionKind(); obj.GetName() == name {
			got[kind.Kind] = kind.Version
		}
	}
	if version != "" {
		want = map[string]string{"MutatingAdmissionPolicy": version, "MutatingAdmissionPolicyBinding": version}
	}
	if !maps.Equal(got, want) {
		t.Errorf("policy and binding have the versions %v, want %v", got, want)
	}
}
