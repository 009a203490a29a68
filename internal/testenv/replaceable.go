package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// NextAssets is the environment variable with the directory of the next minor version of Kubernetes. make matrix sets it.
const NextAssets = "READYGATE_NEXT_ASSETS"

// NextAPIServer skips the test if make matrix names no newer version of Kubernetes. The API servers that the test starts have
// the current version, until the returned function replaces that of a cluster by the next one, with these additional flags.
func NextAPIServer(t *testing.T) (replace func(c *Cluster, flags string)) {
	t.Helper()
	next := os.Getenv(NextAssets)
	if next == "" {
		t.Skip(Unavailable + NextAssets + " names no newer version; make matrix sets it")
	}
	now := Binaries()
	set := ReplaceableAPIServer(t)
	set(now, "")
	return func(c *Cluster, flags string) {
		t.Helper()
		set(next, flags)
		if err := c.KillAPIServer(); err != nil {
			t.Fatal(err)
		}
		if err := c.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

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
