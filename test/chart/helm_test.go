package chart_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/testenv"
)

// helms are the binaries of Helm 4 and Helm 3.
var helms = []string{"helm", "helm3"}

const (
	release   = "readygate"
	namespace = "readygate-system"
)

func chartDir() string { return filepath.Join(testenv.Root(), "charts", "readygate") }

// inputs reads the metadata of the files that other processes read for these tests, so that Go runs the tests
// again if one of them changes.
var inputs = sync.OnceValue(func() error {
	look := func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	}
	return errors.Join(filepath.WalkDir(chartDir(), look), filepath.WalkDir(filepath.Join(testenv.Root(), "hack", "manifests"), look),
		filepath.WalkDir(filepath.Join(testenv.Root(), "hack", "chart"), look))
})

// tool returns the path of a binary that make helm builds.
func tool(t testing.TB, name string) string {
	t.Helper()
	if err := inputs(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(testenv.Root(), "bin", "chart", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no %s (make helm builds it): %v", name, err)
	}
	return path
}

// registryValues sets the registry, which has no default. The values of a test override it.
const registryValues = "testdata/registry-values.yaml"

// runHelm runs a Helm binary with these values and returns its output. Helm has no configuration
// and no cluster except those in env.
func runHelm(t testing.TB, binary, values string, env []string, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	if i := slices.Index(args, "-f"); i >= 0 {
		args = slices.Insert(slices.Clone(args), i, "-f", registryValues)
	}
	cmd := exec.CommandContext(t.Context(), tool(t, binary), args...)
	cmd.Stdin = strings.NewReader(values)
	cmd.Env = append([]string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none")}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s", binary, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// rendered caches the results of template by its arguments: many tests render the chart with the same values.
var rendered sync.Map

type rendering struct {
	text string
	err  error
}

// template renders the chart with these values, hooks included.
func template(t testing.TB, binary, values string, args ...string) (string, error) {
	t.Helper()
	key := strings.Join(append([]string{binary, values}, args...), "\x00")
	if known, ok := rendered.Load(key); ok {
		return known.(rendering).text, known.(rendering).err
	}
	text, err := runHelm(t, binary, values, nil, append([]string{"template", release, chartDir(), "--namespace", namespace, "-f", "-", "--kube-version", "v1.37.0"}, args...)...)
	rendered.Store(key, rendering{text, err})
	return text, err
}

// objects are what a chart rendered, as the types of the API.
type objects []client.Object

// render renders the chart with Helm 4 and decodes it.
func render(t testing.TB, values string, args ...string) objects {
	t.Helper()
	text, err := template(t, "helm", values, args...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// ci returns the content of a values file of charts/readygate/ci.
func ci(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir(), "ci", name+"-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// decode decodes objects and fails on a field that their type does not have. Objects of the
// Prometheus Operator are unstructured.
func decode(t testing.TB, text string) objects {
	t.Helper()
	var all objects
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(document, &content); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(content) == 0 {
			continue // comments
		}
		if strings.HasPrefix(content["apiVersion"].(string), "monitoring.coreos.com/") {
			all = append(all, &unstructured.Unstructured{Object: content})
			continue
		}
		obj, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		all = append(all, obj.(client.Object))
	}
}

// get returns the object of this type and name.
func get[T client.Object](t testing.TB, all objects, name string) T {
	t.Helper()
	for _, obj := range all {
		if found, ok := obj.(T); ok && obj.GetName() == name {
			return found
		}
	}
	var none T
	t.Fatalf("no %T %s among:\n%s", none, name, strings.Join(all.names(), "\n"))
	return none
}

// each returns all objects of this type.
func each[T client.Object](all objects) []T {
	var found []T
	for _, obj := range all {
		if one, ok := obj.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// names returns kind, namespace and name of each object.
func (o objects) names() []string {
	names := make([]string, 0, len(o))
	for _, obj := range o {
		names = append(names, fmt.Sprintf("%s %s/%s", kindOf(obj), obj.GetNamespace(), obj.GetName()))
	}
	return names
}

func kindOf(obj runtime.Object) string { return obj.GetObjectKind().GroupVersionKind().Kind }
