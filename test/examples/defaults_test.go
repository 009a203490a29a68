package examples_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/readygate/readygate/internal/reporter"
)

// kubectl applies the files of a directory in the order of their names. A rule that is applied before its reporter
// taints nodes that are in use.
func TestRulesAreAppliedLast(t *testing.T) {
	files := map[string][]string{}
	rules := map[string]string{}
	for file, objects := range manifests(t, dir) {
		of := filepath.Dir(file)
		files[of] = append(files[of], filepath.Base(file))
		for _, obj := range objects {
			if strings.HasSuffix(obj.GetKind(), "ReadinessRule") {
				rules[of] = filepath.Base(file)
			}
		}
	}
	for of, rule := range rules {
		if last := slices.Max(files[of]); filepath.Base(of) != "optional" && last != rule {
			t.Errorf("%s: kubectl applies %s after %s", of, last, rule)
		}
	}
}

// The image of a reporter names a registry that cannot resolve. A reporter on the network of the node serves metrics on
// loopback only.
func TestReportersHaveSafeDefaults(t *testing.T) {
	for file, objects := range manifests(t, dir) {
		for _, obj := range objects {
			var daemonSet appsv1.DaemonSet
			if obj.GetKind() != "DaemonSet" {
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &daemonSet); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			pod := daemonSet.Spec.Template.Spec
			container := pod.Containers[0]
			if !strings.HasPrefix(container.Image, "registry.example.com/") {
				t.Errorf("%s: the image is %s", file, container.Image)
			}
			loopback := slices.ContainsFunc(container.Env, func(variable corev1.EnvVar) bool {
				return variable.Name == reporter.MetricsBindAddress && strings.HasPrefix(variable.Value, "127.0.0.1:")
			})
			if pod.HostNetwork && !loopback {
				t.Errorf("%s: metrics are served on every address of the node", file)
			}
		}
	}
}
