package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// NextAssets is the environment variable with the directory of the next minor version of Kubernetes. make matrix sets it.
const NextAssets = "READYGATE_NEXT_ASSETS"

// ReplaceableAPIServer returns a function that sets the directory of the binary, and additional flags, for the API servers
// that this test starts later. The test cannot be parallel: an environment variable selects the binaries.
func ReplaceableAPIServer(t *testing.T) func(binaries, flags string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(Binaries(), "etcd"), filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	return func(binaries, flags string) {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" %s\n", filepath.Join(binaries, "kube-apiserver"), flags)
		if err := os.WriteFile(filepath.Join(dir, "kube-apiserver"), []byte(script), 0o700); err != nil { //nolint:gosec // executable
			t.Fatal(err)
		}
	}
}
