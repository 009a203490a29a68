package chart_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/podgate"
)

// withPodgate enables podgate; withoutPodgate overrides the values, for tests in other namespaces than podgate's.
const (
	withPodgate    = "podgate: {enabled: true}\n"
	withoutPodgate = "podgate.enabled=false"
)

func podgateOf(t *testing.T, values string) *appsv1.DaemonSet {
	t.Helper()
	return get[*appsv1.DaemonSet](t, render(t, values), admission.PodgateAccount)
}

// agentOptions parses the arguments of podgate as podgate does.
func agentOptions(t *testing.T, set *appsv1.DaemonSet) *podgate.Options {
	t.Helper()
	args := set.Spec.Template.Spec.Containers[0].Args
	options := podgate.NewOptions()
	flags := pflag.NewFlagSet("podgate", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("podgate rejects the arguments %v: %v", args, err)
	}
	options.Node = "n1" // a variable of the pod
	if err := options.Validate(); err != nil {
		t.Fatalf("podgate does not start with %v: %v", args, err)
	}
	return options
}

// TestPodgateIsOff: by default the chart renders no agent and no gates, and configures no latch for the manager.
func TestPodgateIsOff(t *testing.T) {
	all := render(t, "")
	for _, obj := range all {
		if name := obj.GetName(); strings.HasPrefix(name, admission.GateNewPodsName) || strings.HasPrefix(name, admission.PodgateAccount) && !strings.HasPrefix(kindOf(obj), "ValidatingAdmissionPolicy") {
			t.Errorf("%s %s is rendered with podgate.enabled false", kindOf(obj), name)
		}
	}
	if image := parse(t, pods(all)["readygate-manager"].Containers[0].Args).LatchImage; image != "" {
		t.Errorf("the manager adds the latch %s to pods", image)
	}
}

// TestPodgateOnTheNetworkOfTheNode: podgate probes components and pods from the node's network.
// By default its own endpoints are reachable only from the node.
func TestPodgateOnTheNetworkOfTheNode(t *testing.T) {
	set := podgateOf(t, withPodgate)
	pod, container := set.Spec.Template.Spec, set.Spec.Template.Spec.Containers[0]
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault {
		t.Errorf("hostNetwork is %v and dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
	}
	options := agentOptions(t, set)
	if options.HealthAddr != "127.0.0.1:9478" || options.MetricsAddr != "127.0.0.1:9477" || options.HostRoot != "" {
		t.Errorf("podgate is started with %v", container.Args)
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Host != "127.0.0.1" || port(container, probe.HTTPGet.Port.StrVal) != 9478 {
			t.Errorf("the kubelet probes %v", probe.HTTPGet)
		}
	}
	if len(container.Ports) != 1 || len(pod.Volumes) > 0 {
		t.Errorf("podgate has the ports %v and the volumes %v", container.Ports, pod.Volumes)
	}
	for name, field := range map[string]string{"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"} {
		if !slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == name && env.ValueFrom.FieldRef.FieldPath == field }) {
			t.Errorf("podgate lacks the variable %s: %v", name, container.Env)
		}
	}
}

// TestPodgateRunsOnEveryNode: an update replaces podgate on 10% of the nodes at a time.
func TestPodgateRunsOnEveryNode(t *testing.T) {
	set := podgateOf(t, withPodgate)
	pod := set.Spec.Template.Spec
	if want := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}; !reflect.DeepEqual(pod.Tolerations, want) || pod.PriorityClassName != "system-node-critical" {
		t.Errorf("podgate tolerates %v and has the priority class %q", pod.Tolerations, pod.PriorityClassName)
	}
	if want := map[string]string{corev1.LabelOSStable: "linux"}; !reflect.DeepEqual(pod.NodeSelector, want) || pod.Affinity != nil {
		t.Errorf("podgate has the node selector %v and the affinity %v", pod.NodeSelector, pod.Affinity)
	}
	if update := set.Spec.UpdateStrategy; update.Type != appsv1.RollingUpdateDaemonSetStrategyType || update.RollingUpdate.MaxUnavailable.String() != "10%" {
		t.Errorf("the rollout is %v", update)
	}
}

// hostMounts returns the paths of the node that are mounted below /host.
func hostMounts(t *testing.T, pod corev1.PodSpec) []string {
	t.Helper()
	var paths []string
	for _, volume := range pod.Volumes {
		if volume.HostPath == nil {
			continue
		}
		paths = append(paths, volume.HostPath.Path)
		at := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.Name == volume.Name })
		if at < 0 {
			t.Errorf("%s is not mounted", volume.HostPath.Path)
			continue
		}
		mount := pod.Containers[0].VolumeMounts[at]
		if mount.MountPath != "/host"+volume.HostPath.Path || !mount.ReadOnly || mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationHostToContainer {
			t.Errorf("%s is mounted as %v", volume.HostPath.Path, mount)
		}
	}
	return paths
}

// TestPodgateMountsItsDirectories: podgate mounts only the paths of podgate.hostPaths, read-only.
func TestPodgateMountsItsDirectories(t *testing.T) {
	set := podgateOf(t, ci(t, "podgate"))
	if got := hostMounts(t, set.Spec.Template.Spec); !slices.Equal(got, []string{"/var/run/calico"}) {
		t.Errorf("podgate mounts %v", got)
	}
	if root := agentOptions(t, set).HostRoot; root != "/host" {
		t.Errorf("--host-root is %q, want /host", root)
	}
}

// TestPodgateTakesEveryValue: each value of podgate has its effect.
func TestPodgateTakesEveryValue(t *testing.T) {
	all := render(t, ci(t, "full"))
	set := get[*appsv1.DaemonSet](t, all, admission.PodgateAccount)
	pod, container, options := set.Spec.Template.Spec, set.Spec.Template.Spec.Containers[0], agentOptions(t, set)
	image := "registry.example.com/mirror/readygate/readygate-podgate@sha256:" + strings.Repeat("1", 64)
	if container.Image != image || container.ImagePullPolicy != corev1.PullAlways || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("the image is %s, %s, %v", container.Image, container.ImagePullPolicy, pod.ImagePullSecrets)
	}
	if latch := parse(t, pods(all)["readygate-manager"].Containers[0].Args).LatchImage; latch != image {
		t.Errorf("the image of the latch is %s", latch)
	}
	if options.HealthAddr != "127.0.0.1:9578" || options.MetricsAddr != ":9577" || options.Workers != 32 || port(container, "metrics") != 9577 {
		t.Errorf("podgate is started with %v, its ports are %v", container.Args, container.Ports)
	}
	if got := hostMounts(t, pod); !slices.Equal(got, []string{"/var/run/calico", "/run/agent"}) || *pod.Volumes[1].HostPath.Type != corev1.HostPathDirectory {
		t.Errorf("podgate mounts %v", pod.Volumes)
	}
	if security := container.SecurityContext; *security.RunAsUser != 0 || *security.RunAsNonRoot || !*security.ReadOnlyRootFilesystem {
		t.Errorf("the security context is %v", security)
	}
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || pod.PriorityClassName != "system-cluster-critical" || container.Resources.Limits.Memory().String() != "160Mi" ||
		len(pod.Tolerations) != 1 || pod.Tolerations[0].Key != "example.com/gpu" || pod.NodeSelector["example.com/pool"] != "workers" || pod.Affinity == nil ||
		!slices.Contains(container.Env, corev1.EnvVar{Name: "GODEBUG", Value: "madvdontneed=1"}) ||
		set.Spec.Template.Labels["example.com/pod"] != "yes" || set.Spec.Template.Annotations["example.com/pod"] != "yes" {
		t.Errorf("a value has no effect in %v", set.Spec)
	}
}

// TestGatesNeedPodgateAndTheAPI: the policy for pods does not depend on taintNewNodes.
func TestGatesNeedPodgateAndTheAPI(t *testing.T) {
	const served = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
	for name, test := range map[string]struct {
		values string
		args   []string
		want   string // the version; empty without the policy
	}{
		"enabled":                           {withPodgate, nil, "v1"},
		"disabled":                          {"podgate: {enabled: false}", nil, ""},
		"taintNewNodes disabled":            {withPodgate + "taintNewNodes: {enabled: false}", nil, "v1"},
		"an old version":                    {withPodgate, []string{"--kube-version", "v1.35.9"}, ""},
		"an old version with v1beta1":       {withPodgate, []string{"--kube-version", "v1.35.9", "-a", served}, "v1beta1"},
		"an old version with taintNewNodes": {withPodgate + "taintNewNodes: {enabled: true}", []string{"--kube-version", "v1.35.9"}, ""},
		"an old version of a vendor":        {withPodgate, []string{"--kube-version", "v1.35.9-eks-1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMutating(t, render(t, test.values, test.args...), admission.GateNewPodsName, test.want)
		})
	}
}

// TestMonitorOfPodgate: the PodMonitor is rendered if podgate exposes its metrics, with and without reporters.
func TestMonitorOfPodgate(t *testing.T) {
	const on = "monitoring: {podMonitor: {enabled: true}}\n"
	all := render(t, on+"podgate: {enabled: true, metrics: {expose: true}}")
	object := monitor(t, all, "PodMonitor", admission.PodgateAccount)
	selector, _, err := unstructured.NestedStringMap(object, "spec", "selector", "matchLabels")
	if err != nil || len(selector) == 0 || !fits(selector, get[*appsv1.DaemonSet](t, all, admission.PodgateAccount).Spec.Template.Labels) {
		t.Errorf("the PodMonitor selects %v: %v", selector, err)
	}
	endpoints, _, _ := unstructured.NestedSlice(object, "spec", "podMetricsEndpoints")
	endpoint := endpoints[0].(map[string]any)
	if name, _ := endpoint["port"].(string); port(pods(all)[admission.PodgateAccount].Containers[0], name) != 9477 {
		t.Errorf("the PodMonitor scrapes %v", endpoints)
	}
	// The alerts select the job by this name and show the node.
	want := []any{
		map[string]any{"targetLabel": "job", "replacement": "readygate-podgate"},
		map[string]any{"targetLabel": "node", "sourceLabels": []any{"__meta_kubernetes_pod_node_name"}},
	}
	if !reflect.DeepEqual(endpoint["relabelings"], want) {
		t.Errorf("the PodMonitor relabels by %v, want %v", endpoint["relabelings"], want)
	}
	if found := each[*unstructured.Unstructured](all); len(found) != 1 {
		t.Errorf("the chart renders %d monitors, want only that of podgate", len(found))
	}
	if found := each[*unstructured.Unstructured](render(t, on+withPodgate+"reporters: ["+a+"]")); len(found) != 1 || found[0].GetName() != "readygate-reporters" {
		t.Errorf("the chart renders %v, want no monitor for metrics that are not exposed", found)
	}
}
