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

// sets are the files of values that the chart is checked with.
func sets(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join(chartDir(), "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no values to check the chart with: %v", err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), "-values.yaml"))
	}
	return names
}

// TestBothHelmsRenderTheSame objects, which the API's types can take word for word.
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

// TestLint: both Helms find nothing to complain about.
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

// wantOncePerName: a second object of a name would replace the first.
func wantOncePerName(t *testing.T, all objects) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range all.names() {
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
}

// clusterScoped are the kinds of the chart that have no namespace.
var clusterScoped = []string{
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
}

// TestEverythingIsLabelledAndInItsNamespace, whatever the namespace is called: also one that
// YAML takes for a number.
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
					t.Errorf("%s: %s %s does not say that it is part of readygate", name, kindOf(obj), obj.GetName())
				}
			}
		}
	}
}

// TestNothingNamesAnotherNamespace: texts that were generated for the usual one are changed.
func TestNothingNamesAnotherNamespace(t *testing.T) {
	text, err := template(t, "helm", ci(t, "full"), "--namespace", "elsewhere", "--set", withoutPodgate)
	if err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(text, namespace); at >= 0 {
		t.Errorf("the usual namespace is left in: …%s…", text[max(0, at-100):min(len(text), at+100)])
	}
}

// pods are the templates of all pods, by the name of what makes them.
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

// TestPodsHaveMinimalPrivileges on their node, but for the reporter with a canary.
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
				t.Errorf("%s: the container of %s may do more than it needs: %v", name, owner, container)
			}
			if pod.Containers[0].Resources.Requests.Memory().IsZero() || pod.Containers[0].Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s has no request or limit of memory", name, owner)
			}
		}
	}
	if seen < 8 {
		t.Fatalf("saw only %d pods", seen)
	}
}

// TestPodsStartWhereEveryNodeIsHeld: they are what releases nodes. Those that need not be on a
// certain node leave one that is lost; the first toleration that fits says when.
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

// TestSelectorsFitTheirPods, and the pods of nothing else.
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
				t.Errorf("the selector %v of %s and the labels %v of %s", selector, owner, has, pod)
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

// TestPodsDoNotRestartForANewChart that brings nothing new for them.
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
		t.Fatal("both are the same chart")
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
