package chart_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// sets returns the names of the values files in charts/readygate/ci.
func sets(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join(chartDir(), "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no values files in charts/readygate/ci: %v", err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), "-values.yaml"))
	}
	return names
}

// TestBothHelmsRenderTheSame: Helm 3 and Helm 4 render equal objects, without fields that the API types lack.
func TestBothHelmsRenderTheSame(t *testing.T) {
	for _, name := range sets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rendered []objects
			for _, binary := range helms {
				text, err := template(t, binary, ci(t, name))
				if err != nil {
					t.Fatal(err)
				}
				rendered = append(rendered, decode(t, text))
			}
			if !slices.Equal(rendered[0].names(), rendered[1].names()) {
				t.Fatalf("Helm 4 renders\n%s\nHelm 3\n%s", strings.Join(rendered[0].names(), "\n"), strings.Join(rendered[1].names(), "\n"))
			}
			for i := range rendered[0] {
				if !reflect.DeepEqual(rendered[0][i], rendered[1][i]) {
					t.Errorf("%s: Helm 4 renders\n%v\nHelm 3\n%v", rendered[0].names()[i], rendered[0][i], rendered[1][i])
				}
			}
			wantOncePerName(t, rendered[0])
		})
	}
}

// TestLint: helm lint of both versions reports nothing.
func TestLint(t *testing.T) {
	for _, name := range sets(t) {
		for _, binary := range helms {
			t.Run(name+" "+binary, func(t *testing.T) {
				t.Parallel()
				if out, err := runHelm(t, binary, ci(t, name), nil, "lint", "--strict", chartDir(), "-f", "-"); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// wantOncePerName checks that no object is rendered twice: the second would replace the first.
func wantOncePerName(t *testing.T, all objects) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range all.names() {
		if seen[name] {
			t.Errorf("%s is rendered twice", name)
		}
		seen[name] = true
	}
}

// clusterScoped are the kinds of the chart that have no namespace.
var clusterScoped = []string{
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
}

// TestEverythingIsLabelledAndInItsNamespace: also in a namespace that YAML reads as a number or as null.
func TestEverythingIsLabelledAndInItsNamespace(t *testing.T) {
	for _, other := range []string{"elsewhere", "123", "null"} {
		for _, name := range sets(t) {
			for _, obj := range render(t, ci(t, name), "--namespace", other, "--set", withoutPodgate) {
				want := other
				if slices.Contains(clusterScoped, kindOf(obj)) {
					want = ""
				}
				if obj.GetNamespace() != want {
					t.Errorf("%s: %s %s is in the namespace %q, want %q", name, kindOf(obj), obj.GetName(), obj.GetNamespace(), want)
				}
				if obj.GetLabels()["app.kubernetes.io/part-of"] != "readygate" {
					t.Errorf("%s: %s %s lacks the label app.kubernetes.io/part-of: readygate", name, kindOf(obj), obj.GetName())
				}
			}
		}
	}
}

// TestNothingNamesAnotherNamespace: generated files name the default namespace, and the chart replaces it.
func TestNothingNamesAnotherNamespace(t *testing.T) {
	text, err := template(t, "helm", ci(t, "full"), "--namespace", "elsewhere", "--set", withoutPodgate)
	if err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(text, namespace); at >= 0 {
		t.Errorf("the default namespace is left in: …%s…", text[max(0, at-100):min(len(text), at+100)])
	}
}

// pods returns the pod specs of all Deployments, DaemonSets and Jobs by their name.
func pods(all objects) map[string]corev1.PodSpec {
	found := map[string]corev1.PodSpec{}
	for _, one := range each[*appsv1.Deployment](all) {
		found[one.Name] = one.Spec.Template.Spec
	}
	for _, one := range each[*appsv1.DaemonSet](all) {
		found[one.Name] = one.Spec.Template.Spec
	}
	for _, one := range jobs(all) {
		found[one.Name] = one.Spec.Template.Spec
	}
	return found
}

// TestPodsHaveMinimalPrivileges: all pods except the reporter with a canary run with the least privileges.
func TestPodsHaveMinimalPrivileges(t *testing.T) {
	seen := 0
	for _, name := range []string{"default", "reporters", "proxyless"} {
		for owner, pod := range pods(render(t, ci(t, name))) {
			if owner == "readygate-reporter-flannel" {
				continue
			}
			seen++
			container, security := pod.Containers[0].SecurityContext, pod.SecurityContext
			if !*security.RunAsNonRoot || *security.RunAsUser == 0 || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: %s runs as %v", name, owner, security)
			}
			if *container.AllowPrivilegeEscalation || !*container.ReadOnlyRootFilesystem || container.RunAsUser != nil ||
				!slices.Equal(container.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(container.Capabilities.Add) > 0 {
				t.Errorf("%s: the container of %s has more privileges than it needs: %v", name, owner, container)
			}
			if pod.Containers[0].Resources.Requests.Memory().IsZero() || pod.Containers[0].Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s has no memory request or limit", name, owner)
			}
		}
	}
	if seen < 8 {
		t.Fatalf("found only %d pods", seen)
	}
}

// TestPodsStartWhereEveryNodeIsHeld: Readygate's pods must start on held nodes to release them. Pods that can run on
// any node are evicted from an unreachable one; the first matching toleration sets the delay.
func TestPodsStartWhereEveryNodeIsHeld(t *testing.T) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	lost := corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](30)}
	for owner, pod := range pods(render(t, ci(t, "reporters")+withPodgate)) {
		want := []corev1.Toleration{lost, all}
		if strings.Contains(owner, "reporter") || owner == "readygate-podgate" {
			want = want[1:]
		}
		if !reflect.DeepEqual(pod.Tolerations, want) {
			t.Errorf("%s tolerates %v", owner, pod.Tolerations)
		}
		if !strings.HasPrefix(pod.PriorityClassName, "system-") {
			t.Errorf("%s has the priority class %q", owner, pod.PriorityClassName)
		}
		if pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken {
			t.Errorf("%s gets no token", owner)
		}
	}
}

// TestSelectorsFitTheirPods: each selector selects only the pods of its own object.
func TestSelectorsFitTheirPods(t *testing.T) {
	all := render(t, ci(t, "reporters")+withPodgate)
	labels := map[string]map[string]string{}
	selectors := map[string]map[string]string{}
	for _, one := range each[*appsv1.Deployment](all) {
		labels[one.Name], selectors[one.Name] = one.Spec.Template.Labels, one.Spec.Selector.MatchLabels
	}
	for _, one := range each[*appsv1.DaemonSet](all) {
		labels[one.Name], selectors[one.Name] = one.Spec.Template.Labels, one.Spec.Selector.MatchLabels
	}
	for owner, selector := range selectors {
		for pod, has := range labels {
			if fits(selector, has) != (owner == pod) {
				t.Errorf("the selector %v of %s and the labels %v of %s: unexpected match or mismatch", selector, owner, has, pod)
			}
		}
	}
	for _, service := range each[*corev1.Service](all) {
		owner := strings.TrimSuffix(strings.TrimSuffix(service.Name, "-metrics"), "-all")
		if !fits(service.Spec.Selector, labels[owner]) {
			t.Errorf("the Service %s selects %v", service.Name, service.Spec.Selector)
		}
	}
}

func fits(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// TestPodsDoNotRestartForANewChart: a new chart version alone changes no pod template.
func TestPodsDoNotRestartForANewChart(t *testing.T) {
	changed := t.TempDir()
	if err := os.CopyFS(changed, os.DirFS(chartDir())); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(changed, "Chart.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "\nversion: ", "\nversion: 9", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	values := ci(t, "reporters") + withPodgate
	text, err := runHelm(t, "helm", values, nil, "template", release, changed, "--namespace", namespace, "-f", "-", "--kube-version", "v1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	before, after := render(t, values), decode(t, text)
	if get[*appsv1.Deployment](t, before, "readygate-manager").Labels["helm.sh/chart"] == get[*appsv1.Deployment](t, after, "readygate-manager").Labels["helm.sh/chart"] {
		t.Fatal("both charts have the same version")
	}
	for _, one := range each[*appsv1.DaemonSet](before) {
		if !reflect.DeepEqual(one.Spec, get[*appsv1.DaemonSet](t, after, one.Name).Spec) {
			t.Errorf("%s restarts", one.Name)
		}
	}
	if !reflect.DeepEqual(get[*appsv1.Deployment](t, before, "readygate-manager").Spec, get[*appsv1.Deployment](t, after, "readygate-manager").Spec) {
		t.Error("the manager restarts")
	}
}
