package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	kubectlPath = "/v1.37.0/bin/linux/amd64/kubectl"
	etcdPath    = "/v3.7.3/etcd-v3.7.3-linux-amd64.tar.gz"
)

// archive is an archive of etcd, as it is released.
func archive(t *testing.T, content string) string {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	files := tar.NewWriter(zipped)
	for _, name := range []string{"etcd-v3.7.3-linux-amd64/README.md", "etcd-v3.7.3-linux-amd64/etcd"} {
		if err := files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(files, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// site serves files by path.
func site(t *testing.T, files map[string]string) *releases {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(server.Close)
	return &releases{Kubernetes: "v1.37.0", Etcd: "v3.7.3", KubernetesURL: server.URL, EtcdURL: server.URL, OS: "linux", Arch: "amd64", Out: io.Discard}
}

// whole are the files of a complete release.
func whole(t *testing.T) map[string]string {
	t.Helper()
	etcd := archive(t, "etcd")
	return map[string]string{
		kubectlPath: "kubectl", kubectlPath + ".sha256": sumOf("kubectl"),
		etcdPath: etcd, "/v3.7.3/SHA256SUMS": sumOf("other") + "  etcd-v3.7.3-linux-arm64.tar.gz\n" + sumOf(etcd) + "  " + filepath.Base(etcdPath) + "\n",
	}
}

// wantFiles checks the content of a directory: only these executables, and nothing half-written.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if info, _ := entry.Info(); err != nil || info.Mode().Perm() != 0o755 || string(content) != entry.Name() {
			t.Errorf("%s has mode %v and content %q (%v)", entry.Name(), info.Mode(), content, err)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("the directory has %v, want %v", names, want)
	}
}

func TestAReleaseIsDownloadedAndVerified(t *testing.T) {
	dir := t.TempDir()
	if err := site(t, whole(t)).fetch(t.Context(), dir, []string{"etcd", "kubectl"}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "etcd", "kubectl")
}

// A file that is not what was released is an error that people must see: it is not the same as no release.
func TestAWrongFileIsNotKept(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"another binary":       func(files map[string]string) { files[kubectlPath] = "hacked" },
		"half a binary":        func(files map[string]string) { files[kubectlPath] = "kube" },
		"no archive":           func(files map[string]string) { files[etcdPath] = "etcd" },
		"the binary is absent": func(files map[string]string) { delete(files, kubectlPath) },
	} {
		t.Run(name, func(t *testing.T) {
			files, dir := whole(t), t.TempDir()
			change(files)
			err := site(t, files).fetch(t.Context(), dir, []string{"kubectl", "etcd"})
			if err == nil || errors.Is(err, errUnavailable) {
				t.Errorf("the error is %v", err)
			}
			if files[kubectlPath] == "kubectl" {
				wantFiles(t, dir, "kubectl")
			} else {
				wantFiles(t, dir)
			}
		})
	}
}

// Without a release, nothing is downloaded, and the caller learns that it has to build.
func TestNoRelease(t *testing.T) {
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + nowhere.Addr().String()
	if err := nowhere.Close(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*releases, map[string]string){
		"no checksum of a binary":        func(_ *releases, files map[string]string) { delete(files, kubectlPath+".sha256") },
		"no checksum of the archive":     func(_ *releases, files map[string]string) { files["/v3.7.3/SHA256SUMS"] = sumOf("x") + "  other" },
		"a page instead of a checksum":   func(_ *releases, files map[string]string) { files[kubectlPath+".sha256"] = "<html>log in</html>" },
		"another version":                func(r *releases, _ map[string]string) { r.Kubernetes = "v9.9.9" },
		"another operating system":       func(r *releases, _ map[string]string) { r.OS = "plan9" },
		"no network":                     func(r *releases, _ map[string]string) { r.KubernetesURL = closed },
		"a name that cannot be resolved": func(r *releases, _ map[string]string) { r.KubernetesURL = "http://kube.invalid" },
	} {
		t.Run(name, func(t *testing.T) {
			files, dir := whole(t), t.TempDir()
			r := site(t, files)
			change(r, files)
			if err := r.fetch(t.Context(), dir, []string{"etcd", "kubectl"}); !errors.Is(err, errUnavailable) {
				t.Errorf("the error is %v", err)
			}
			wantFiles(t, dir)
		})
	}
}

// A server that does not answer is given up on.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer server.Close()
	defer close(done)
	r := site(t, nil)
	r.KubernetesURL = server.URL
	err := r.fetch(t.Context(), t.TempDir(), []string{"kubectl"})
	if !errors.Is(err, errUnavailable) || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("the error is %v", err)
	}
}
