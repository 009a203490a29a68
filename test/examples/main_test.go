// Package examples tests what users apply: every example against a real API server, and the
// CNI guides from the first command to the last.
package examples_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"github.com/readygate/readygate/internal/testenv"
)

var shared struct {
	start   sync.Once
	cluster *testenv.Cluster
	manager func() error
	err     error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // what fails, a test says
	klog.SetLogger(logr.Discard())
	code := m.Run()
	if shared.manager != nil {
		_ = shared.manager()
	}
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	testenv.CleanUp()
	os.Exit(code)
}

// cluster is a control plane with everything but kubelets: a manager, the policies, the
// controllers of Kubernetes and its scheduler.
func cluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	shared.start.Do(func() { shared.err = start(context.Background()) })
	if shared.err != nil {
		t.Fatalf("starting the shared control plane: %v", shared.err)
	}
	return shared.cluster
}

func start(ctx context.Context) error {
	var err error
	if shared.cluster, err = testenv.NewCluster(ctx); err != nil {
		return err
	}
	for _, do := range []func(context.Context) error{
		shared.cluster.InstallPolicies, shared.cluster.StartControllerManager, shared.cluster.StartScheduler,
	} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	_, shared.manager, err = shared.cluster.RunManager()
	return err
}

// dir is where the examples are.
var dir = filepath.Join(testenv.Root(), "examples")

// manifests are the YAML files below a directory that hold objects, by their path from there.
func manifests(t *testing.T, root string) map[string][]*unstructured.Unstructured {
	t.Helper()
	files := map[string][]*unstructured.Unstructured{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if filepath.Base(path) == "cni-patcher-sidecar.yaml" {
			return nil // a container, which apply-calico.sh puts into a DaemonSet
		}
		files[name], err = objects(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func objects(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); err != nil {
			if strings.Contains(err.Error(), "EOF") {
				return all, nil
			}
			return nil, errors.Join(errors.New(path), err)
		}
		all = append(all, obj)
	}
}
