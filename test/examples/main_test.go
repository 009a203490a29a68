// Package examples_test applies every example to a real API server, and runs the CNI guides from the first command to
// the last.
package examples_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/readygate/readygate/internal/testenv"
)

// shared is a cluster with a manager, the policies, kube-controller-manager and kube-scheduler. It has no kubelets.
var shared = testenv.Shared{Setup: func(ctx context.Context, s *testenv.Shared) error {
	if err := errors.Join(s.StartControllerManager(ctx), s.StartScheduler(ctx)); err != nil {
		return err
	}
	return testenv.WithManager(ctx, s)
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func cluster(t *testing.T) *testenv.Cluster { return shared.Get(t) }

// dir is the directory of the examples.
var dir = filepath.Join(testenv.Root(), "examples")

// manifests returns the objects of the YAML files below a directory, by the relative path of the file.
func manifests(t *testing.T, root string) map[string][]*unstructured.Unstructured {
	t.Helper()
	files := map[string][]*unstructured.Unstructured{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if filepath.Base(path) == "cni-patcher-sidecar.yaml" {
			return nil // a container that apply-calico.sh adds to a DaemonSet
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
