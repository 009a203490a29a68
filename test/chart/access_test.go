package chart_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// rights are the RBAC rules of an account per namespace; the key "" stands for the whole cluster.
type rights map[string][]rbacv1.PolicyRule

// rightsOf collects the rules of all roles that are bound to an account.
func rightsOf(t *testing.T, all objects, account string) rights {
	t.Helper()
	found := rights{}
	add := func(in string, subjects []rbacv1.Subject, role string) {
		if !slices.Contains(subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: namespace}) {
			return
		}
		if in == "" {
			found[in] = append(found[in], get[*rbacv1.ClusterRole](t, all, role).Rules...)
			return
		}
		found[in] = append(found[in], get[*rbacv1.Role](t, all, role).Rules...)
	}
	for _, binding := range each[*rbacv1.ClusterRoleBinding](all) {
		add("", binding.Subjects, binding.RoleRef.Name)
	}
	for _, binding := range each[*rbacv1.RoleBinding](all) {
		add(binding.Namespace, binding.Subjects, binding.RoleRef.Name)
	}
	return found
}

// generated reads the rules from a role file that is generated from the code.
func generated(t *testing.T, file string) rights {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir(), "files", file))
	if err != nil {
		t.Fatal(err)
	}
	found := rights{}
	for _, document := range strings.Split(strings.TrimPrefix(string(data), "---\n"), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		found[role.Namespace] = append(found[role.Namespace], role.Rules...)
	}
	return found
}

// TestAccountsMayDoWhatTheCodeNeeds: each account has exactly the rights that the code needs.
func TestAccountsMayDoWhatTheCodeNeeds(t *testing.T) {
	all := render(t, ci(t, "reporters")+withPodgate)
	want := map[string]rights{
		"readygate-manager": generated(t, "role.yaml"),
		"readygate-cleanup": generated(t, "cleanup-role.yaml"),
		"readygate-podgate": generated(t, "podgate-role.yaml"),
	}
	for _, name := range []string{"cilium", "network", "flannel", "gpu"} {
		want["readygate-reporter-"+name] = rights{"": {{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}}}}
	}
	for _, account := range each[*corev1.ServiceAccount](all) {
		if got := rightsOf(t, all, account.Name); !reflect.DeepEqual(got, want[account.Name]) {
			t.Errorf("%s has the rights\n%v\nwant\n%v", account.Name, got, want[account.Name])
		}
		delete(want, account.Name)
	}
	for account := range want {
		t.Errorf("no account %s", account)
	}
	for owner, pod := range pods(all) {
		if pod.ServiceAccountName != owner {
			t.Errorf("%s runs as %s", owner, pod.ServiceAccountName)
		}
	}
}

// TestMetricsReaderRoleIsBoundOnlyToNamedReaders: without names in the values, the role has no binding.
func TestMetricsReaderRoleIsBoundOnlyToNamedReaders(t *testing.T) {
	const role = "readygate-metrics-reader"
	all := render(t, "")
	want := []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
	if got := get[*rbacv1.ClusterRole](t, all, role).Rules; !reflect.DeepEqual(got, want) {
		t.Errorf("%s has the rules %v, want %v", role, got, want)
	}
	isReader := func(binding *rbacv1.ClusterRoleBinding) bool { return binding.RoleRef.Name == role }
	if slices.ContainsFunc(each[*rbacv1.ClusterRoleBinding](all), isReader) {
		t.Errorf("%s is bound, but the values name no reader", role)
	}
	binding := get[*rbacv1.ClusterRoleBinding](t, render(t, ci(t, "full")), role)
	if want := (rbacv1.Subject{Kind: "ServiceAccount", Name: "prometheus-k8s", Namespace: "monitoring"}); len(binding.Subjects) != 1 || binding.Subjects[0] != want {
		t.Errorf("%s is bound to %v, want %v", role, binding.Subjects, want)
	}
	for _, obj := range render(t, ci(t, "small")) {
		if strings.Contains(client.ObjectKeyFromObject(obj).Name, "metrics") {
			t.Errorf("%s is rendered with metrics.enabled false", obj.GetName())
		}
	}
}
