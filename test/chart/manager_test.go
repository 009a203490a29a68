package chart_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/internal/manager"
)

func managerOf(t *testing.T, values string) *appsv1.Deployment {
	t.Helper()
	return get[*appsv1.Deployment](t, render(t, values), "readygate-manager")
}

// TestManagerOnTheNetworkOfTheNode: the manager must work before the pod network does.
func TestManagerOnTheNetworkOfTheNode(t *testing.T) {
	deployment := managerOf(t, "")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault {
		t.Errorf("hostNetwork is %v and dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
	}
	options := parse(t, container.Args)
	if options.HealthAddr != "127.0.0.1:9446" || options.MetricsAddr != ":9447" || !options.MetricsSecure || !options.LeaderElect || options.LeaseSpace != namespace {
		t.Errorf("the manager is started with %v", container.Args)
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		if probe.HTTPGet.Host != "127.0.0.1" || port(container, probe.HTTPGet.Port.StrVal) != 9446 {
			t.Errorf("the kubelet probes %v", probe.HTTPGet)
		}
	}
	// The ports are those of the node: a node that runs a replica has no free port for a second one.
	if update := deployment.Spec.Strategy.RollingUpdate; update.MaxSurge.IntValue() != 0 || update.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the rollout is %v", update)
	}
}

func TestManagerOnTheNetworkOfPods(t *testing.T) {
	deployment := managerOf(t, "manager: {hostNetwork: false}")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirst {
		t.Errorf("hostNetwork is %v and dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
	}
	if options := parse(t, container.Args); options.HealthAddr != ":9446" {
		t.Errorf("the health endpoint listens on %s, where the kubelet cannot reach it", options.HealthAddr)
	}
	if container.LivenessProbe.HTTPGet.Path != "/healthz" || container.ReadinessProbe.HTTPGet.Path != "/readyz" || container.ReadinessProbe.HTTPGet.Host != "" {
		t.Errorf("the kubelet probes %v and %v", container.LivenessProbe.HTTPGet, container.ReadinessProbe.HTTPGet)
	}
	if update := deployment.Spec.Strategy.RollingUpdate; update.MaxSurge.IntValue() != 1 || update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("the rollout is %v", update)
	}
}

// parse parses the arguments as the manager does.
func parse(t *testing.T, args []string) *manager.Options {
	t.Helper()
	options := manager.NewOptions()
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("the manager rejects the arguments %v: %v", args, err)
	}
	options.MetricsCerts = "" // a directory of the pod
	if err := options.Validate(); err != nil {
		t.Fatalf("the manager does not start with %v: %v", args, err)
	}
	return options
}

func port(container corev1.Container, name string) int32 {
	for _, port := range container.Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

// TestManagerAcceptsItsRenderedArguments in every set of values.
func TestManagerAcceptsItsRenderedArguments(t *testing.T) {
	for _, name := range sets(t) {
		parse(t, managerOf(t, ci(t, name)).Spec.Template.Spec.Containers[0].Args)
	}
	container := managerOf(t, ci(t, "full")).Spec.Template.Spec.Containers[0]
	if want := "registry.example.com/mirror/readygate/readygate-manager@sha256:" + strings.Repeat("0", 64); container.Image != want {
		t.Errorf("the image is %s, want %s", container.Image, want)
	}
	if !slices.Contains(container.Args, "--zap-log-level=debug") || !slices.Contains(container.Env, corev1.EnvVar{Name: "GODEBUG", Value: "madvdontneed=1"}) {
		t.Errorf("extraArgs or extraEnv are not in %v, %v", container.Args, container.Env)
	}
	if !slices.Contains(container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "220MiB"}) {
		t.Errorf("gomemlimit is not in %v", container.Env)
	}
	for values, want := range map[string]time.Duration{ci(t, "full"): 3 * time.Minute, "": time.Minute} {
		if got := parse(t, managerOf(t, values).Spec.Template.Spec.Containers[0].Args).RequestTimeout; got != want {
			t.Errorf("the request timeout of the API server is %v, want %v", got, want)
		}
	}
	if image := managerOf(t, "").Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/readygate/readygate-manager:v0.1.0" {
		t.Errorf("the image is %s", image)
	}
	if slices.ContainsFunc(managerOf(t, "metrics: {enabled: false}").Spec.Template.Spec.Containers[0].Args, func(arg string) bool { return strings.HasPrefix(arg, "--metrics") }) {
		t.Error("the manager serves metrics with metrics.enabled false")
	}
}

// TestPodsUseTheConfiguredAddressOfTheAPIServer: until a CNI that replaces kube-proxy runs, no Service routes to the
// API server. A reporter on the pod network uses the Service.
func TestPodsUseTheConfiguredAddressOfTheAPIServer(t *testing.T) {
	want := []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example.com"}, {Name: "KUBERNETES_SERVICE_PORT", Value: "443"}}
	for owner, pod := range pods(render(t, ci(t, "proxyless"))) {
		var got []corev1.EnvVar
		for _, env := range pod.Containers[0].Env {
			if strings.HasPrefix(env.Name, "KUBERNETES_") {
				got = append(got, env)
			}
		}
		if pod.HostNetwork != reflect.DeepEqual(got, want) || !pod.HostNetwork && got != nil {
			t.Errorf("%s (hostNetwork %v) has the API server address %v", owner, pod.HostNetwork, got)
		}
	}
}

// TestADrainIsNeverBlocked: the disruption budget allows a drain, also with one replica.
func TestADrainIsNeverBlocked(t *testing.T) {
	all := render(t, "manager: {replicas: 1}")
	budget := get[*policyv1.PodDisruptionBudget](t, all, "readygate-manager")
	if budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the PodDisruptionBudget is %v", budget.Spec)
	}
	if !fits(budget.Spec.Selector.MatchLabels, get[*appsv1.Deployment](t, all, "readygate-manager").Spec.Template.Labels) {
		t.Errorf("the PodDisruptionBudget selects %v", budget.Spec.Selector)
	}
	if len(each[*policyv1.PodDisruptionBudget](render(t, ci(t, "small")))) > 0 {
		t.Error("a PodDisruptionBudget is rendered although the values disable it")
	}
}

// TestCRDsAreThoseOfTheAPI: Helm keeps the CRDs when it uninstalls the release, unless crds.keep is false.
func TestCRDsAreThoseOfTheAPI(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for values, policy := range map[string]string{"": "keep", "crds: {keep: false}": ""} {
		all := render(t, values)
		if found := each[*apiextensionsv1.CustomResourceDefinition](all); len(found) != len(definitions) {
			t.Errorf("with %q the chart renders %d CRDs, want %d", values, len(found), len(definitions))
		}
		for _, want := range definitions {
			got := get[*apiextensionsv1.CustomResourceDefinition](t, all, want.Name)
			if !reflect.DeepEqual(got.Spec, want.Spec) {
				t.Errorf("with %q the CRD %s differs from that of api/crds", values, want.Name)
			}
			if got.Annotations["helm.sh/resource-policy"] != policy {
				t.Errorf("with %q the CRD %s has the annotations %v", values, want.Name, got.Annotations)
			}
		}
	}
	if found := each[*apiextensionsv1.CustomResourceDefinition](render(t, "crds: {install: false}")); len(found) > 0 {
		t.Error("a CRD is rendered with crds.install false")
	}
}
