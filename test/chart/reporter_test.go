package chart_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/readygate/readygate/internal/reporter"
)

func daemonSet(t *testing.T, all objects, name string) *appsv1.DaemonSet {
	t.Helper()
	return get[*appsv1.DaemonSet](t, all, "readygate-reporter-"+name)
}

// configOf parses the configuration of a reporter as the reporter does.
func configOf(t *testing.T, all objects, name string) *reporter.Config {
	t.Helper()
	config, err := reporter.ParseConfig([]byte(get[*corev1.ConfigMap](t, all, "readygate-reporter-"+name).Data["config.yaml"]))
	if err != nil {
		t.Fatalf("the reporter %s rejects its configuration: %v", name, err)
	}
	return config
}

// environment parses the environment variables of a reporter as the reporter does.
func environment(t *testing.T, set *appsv1.DaemonSet) reporter.Environment {
	t.Helper()
	env, err := reporter.ReadEnvironment(func(name string) string {
		for _, variable := range set.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == name {
				return variable.Value
			}
		}
		return ""
	})
	if err != nil {
		t.Fatalf("%s rejects its variables: %v", set.Name, err)
	}
	return env
}

// TestReportersTakeTheirConfiguration: the values files together use every kind of check.
func TestReportersTakeTheirConfiguration(t *testing.T) {
	kinds := map[string]bool{}
	for _, name := range sets(t) {
		all := render(t, ci(t, name))
		for _, set := range each[*appsv1.DaemonSet](all) {
			short, found := strings.CutPrefix(set.Name, "readygate-reporter-")
			if !found {
				continue
			}
			environment(t, set)
			for _, check := range configOf(t, all, short).Checks {
				kinds[check.Kind()] = true
			}
		}
	}
	if len(kinds) != 7 {
		t.Errorf("the values files have only checks of the kinds %v", kinds)
	}
	if config := configOf(t, render(t, ci(t, "full")), "everything"); config.HeartbeatPeriod.Minutes() != 2 || *config.Checks[0].FailureThreshold != 4 {
		t.Errorf("the configuration is %+v", config)
	}
}

// TestReporterOfAHealthEndpoint: a reporter that probes an endpoint has the requests and limits of the guides.
func TestReporterOfAHealthEndpoint(t *testing.T) {
	set := daemonSet(t, render(t, ci(t, "reporters")), "cilium")
	pod, container := set.Spec.Template.Spec, set.Spec.Template.Spec.Containers[0]
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	if !reflect.DeepEqual(container.Resources.Requests, small) || !reflect.DeepEqual(container.Resources.Limits, small) {
		t.Errorf("the resources are %v", container.Resources)
	}
	if !pod.HostNetwork || pod.PriorityClassName != "system-node-critical" {
		t.Errorf("hostNetwork is %v, the priority class %s", pod.HostNetwork, pod.PriorityClassName)
	}
	// On the node's network the metrics are reachable only from the node, unless they are exposed.
	if env := environment(t, set); env.MetricsAddr != "127.0.0.1:9445" || len(container.Ports) > 0 {
		t.Errorf("metrics are at %s, ports %v", env.MetricsAddr, container.Ports)
	}
	node := slices.IndexFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == reporter.NodeName })
	if node < 0 || container.Env[node].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("the reporter lacks the name of its node: %v", container.Env)
	}
	if len(pod.Volumes) != 1 {
		t.Errorf("the reporter mounts %v", pod.Volumes)
	}
}

// TestReporterWithPeers: the Services that its check names select the reporter.
func TestReporterWithPeers(t *testing.T) {
	all := render(t, ci(t, "reporters"))
	set := daemonSet(t, all, "network")
	peers := configOf(t, all, "network").Checks[0].Peers
	ready, everyone := get[*corev1.Service](t, all, peers.Ready), get[*corev1.Service](t, all, peers.Everyone)
	if ready.Spec.PublishNotReadyAddresses || !everyone.Spec.PublishNotReadyAddresses || ready.Spec.ClusterIP == corev1.ClusterIPNone {
		t.Errorf("the Services are %v and %v", ready.Spec, everyone.Spec)
	}
	container := set.Spec.Template.Spec.Containers[0]
	if container.ReadinessProbe == nil || container.ReadinessProbe.HTTPGet.Path != "/readyz" || port(container, container.ReadinessProbe.HTTPGet.Port.StrVal) != ready.Spec.Ports[0].Port {
		t.Errorf("the probe is %v", container.ReadinessProbe)
	}
	if env := environment(t, set); env.MetricsAddr != ":9445" || set.Spec.Template.Spec.HostNetwork {
		t.Errorf("peers cannot reach the address %s", env.MetricsAddr)
	}
	if len(each[*corev1.Service](all)) != 3 {
		t.Error("the chart renders other Services than those of the peers and the manager's metrics")
	}
}

// TestReporterWithACanary: the reporter has the capabilities to run CNI plugins, and mounts the paths that they need.
func TestReporterWithACanary(t *testing.T) {
	pod := daemonSet(t, render(t, ci(t, "reporters")), "flannel").Spec.Template.Spec
	container, security := pod.Containers[0], pod.Containers[0].SecurityContext
	if !pod.HostNetwork || *security.RunAsUser != 0 || *security.RunAsNonRoot || security.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined ||
		!*security.ReadOnlyRootFilesystem || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		!slices.Equal(security.Capabilities.Add, []corev1.Capability{"SYS_ADMIN", "NET_ADMIN", "NET_RAW"}) {
		t.Errorf("the canary has the security context %v", security)
	}
	// The API server rejects allowPrivilegeEscalation: false together with SYS_ADMIN.
	if security.AllowPrivilegeEscalation != nil {
		t.Error("allowPrivilegeEscalation is set")
	}
	want := map[string]bool{"/etc/cni/net.d": true, "/opt/cni/bin": true, "/run/flannel": true, "/var/lib/cni": false, "/var/lib/readygate/canary": false}
	if got := mounts(pod); !reflect.DeepEqual(got, want) {
		t.Errorf("the reporter mounts %v, want %v (true: read-only)", got, want)
	}
	if container.Resources.Limits.Memory().String() != "64Mi" || !container.Resources.Limits.Cpu().IsZero() {
		t.Errorf("the resources are %v", container.Resources)
	}
}

// mounts returns the paths of the node that are mounted at the same path, and whether they are read-only.
func mounts(pod corev1.PodSpec) map[string]bool {
	found := map[string]bool{}
	for _, volume := range pod.Volumes {
		for _, mount := range pod.Containers[0].VolumeMounts {
			if volume.HostPath != nil && mount.Name == volume.Name && mount.MountPath == volume.HostPath.Path {
				found[mount.MountPath] = mount.ReadOnly
			}
		}
	}
	return found
}

// TestReporterMountsAPathOnce: two checks and the values name the same path.
func TestReporterMountsAPathOnce(t *testing.T) {
	pod := daemonSet(t, render(t, `reporters:
- name: a
  checks:
  - {conditionType: example.com/A, cni: {}}
  - {conditionType: example.com/B, cni: {canary: {stateDir: /run/canary}}}
  hostPaths: [{path: /etc/cni/net.d, readOnly: false}]
`), "a").Spec.Template.Spec
	want := map[string]bool{"/etc/cni/net.d": false, "/opt/cni/bin": true, "/var/lib/cni": false, "/run/canary": false}
	if got := mounts(pod); !reflect.DeepEqual(got, want) || len(pod.Volumes) != len(want)+1 {
		t.Errorf("the reporter mounts %v in %d volumes, want %v (true: read-only)", got, len(pod.Volumes), want)
	}
}

// TestReporterTakesEveryValue: each value of a reporter has its effect.
func TestReporterTakesEveryValue(t *testing.T) {
	set := daemonSet(t, render(t, ci(t, "full")), "everything")
	pod, container := set.Spec.Template.Spec, set.Spec.Template.Spec.Containers[0]
	if container.Image != "registry.example.com/mirror/example/reporter:v9" || container.ImagePullPolicy != corev1.PullAlways || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("the image is %s, %s, %v", container.Image, container.ImagePullPolicy, pod.ImagePullSecrets)
	}
	if environment(t, set).MetricsAddr != ":9460" || port(container, "metrics") != 9460 {
		t.Errorf("metrics are not exposed: %v", container.Ports)
	}
	for _, want := range []corev1.EnvVar{{Name: "EXAMPLE", Value: "1"}, {Name: "KUBERNETES_SERVICE_HOST", Value: "127.0.0.1"}, {Name: "KUBERNETES_SERVICE_PORT", Value: "7445"}} {
		if !slices.Contains(container.Env, want) {
			t.Errorf("no %v in %v", want, container.Env)
		}
	}
	want := map[string]bool{"/etc/kubernetes/cni/net.d": true, "/usr/libexec/cni": true, "/opt/agent": true, "/run/agent": false}
	if got := mounts(pod); !reflect.DeepEqual(got, want) {
		t.Errorf("the reporter mounts %v, want %v (true: read-only)", got, want)
	}
	// An explicit false is kept.
	if security := container.SecurityContext; *security.ReadOnlyRootFilesystem || *security.RunAsUser != 0 || *security.AllowPrivilegeEscalation {
		t.Errorf("the security context is %v", security)
	}
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || pod.PriorityClassName != "system-cluster-critical" ||
		pod.Tolerations[0].Key != "example.com/gpu" || pod.NodeSelector["example.com/pool"] != "workers" || pod.Affinity == nil ||
		!slices.Contains(container.Args, "--log-level=debug") || set.Spec.Template.Labels["example.com/pod"] != "yes" || set.Spec.Template.Annotations["example.com/pod"] != "yes" {
		t.Errorf("a value has no effect in %v", set.Spec)
	}
}

// TestReportersAcceptEmptyValues: an empty value is kept and does not select the default.
func TestReportersAcceptEmptyValues(t *testing.T) {
	values := "reporters: [{name: a, tolerations: [], nodeSelector: {}, priorityClassName: '', checks: [{conditionType: A, file: {path: /run/a}}]}]"
	for owner, pod := range pods(render(t, values)) {
		if strings.Contains(owner, "reporter") && (len(pod.Tolerations) > 0 || len(pod.NodeSelector) > 0 || pod.PriorityClassName != "") {
			t.Errorf("%s tolerates %v, selects %v, has the priority class %q", owner, pod.Tolerations, pod.NodeSelector, pod.PriorityClassName)
		}
	}
}

// TestReportersRestartWhenTheirChecksChange: other reporters keep their pod template.
func TestReportersRestartWhenTheirChecksChange(t *testing.T) {
	before := render(t, ci(t, "reporters"))
	after := render(t, strings.Replace(ci(t, "reporters"), "interval: 15s", "interval: 16s", 1))
	for _, set := range each[*appsv1.DaemonSet](before) {
		same := reflect.DeepEqual(set.Spec.Template, get[*appsv1.DaemonSet](t, after, set.Name).Spec.Template)
		if same == (set.Name == "readygate-reporter-cilium") {
			t.Errorf("%s: the pod template is unchanged: %v", set.Name, same)
		}
	}
}
