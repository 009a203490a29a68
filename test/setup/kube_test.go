// Package setup_test tests the scripts that make runs before it builds or tests anything.
package setup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

// goStub replaces go build, which takes minutes, and passes all other commands to the real go. It writes scripts that
// print "source" in place of binaries. With BUILD_FAILS it fails. The real build runs if make kube finds no release.
const goStub = `#!/usr/bin/env bash
set -euo pipefail
[[ $1 != "list" || $2 != -deps ]] || exit 0
[[ $1 == build ]] || exec "$REAL_GO" "$@"
[[ -z ${BUILD_FAILS:-} ]] || exit 1
echo "$*" >>"$BUILDS"
sleep "${BUILD_TIME:-0}"
while [[ $1 != -o ]]; do shift; done
to=$2
shift 2
for package; do
  file=$to
  [[ $to != */ ]] || file=$to${package##*/}
  printf '#!/bin/sh\necho source\n' >"$file"
  chmod 755 "$file"
done
`

const program = "#!/bin/sh\necho release\n"

// site serves the releases that hack/kube/build downloads.
type site struct {
	*httptest.Server
	files  map[string]string // by base name
	member string            // of the archive of etcd
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{files: map[string]string{}, member: "etcd"}
	for _, name := range []string{"kube-apiserver", "kubectl"} {
		s.files[name], s.files[name+".sha256"] = program, sumOf(program)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		content, ok := s.files[name]
		switch {
		case ok:
		case strings.HasPrefix(name, "etcd-v"):
			content = archive(t, strings.TrimSuffix(name, ".tar.gz")+"/"+s.member)
		case name == "SHA256SUMS":
			etcd := "etcd-" + path.Base(path.Dir(r.URL.Path)) + "-" + runtime.GOOS + "-" + runtime.GOARCH
			content = sumOf("other") + "  other.tar.gz\n" + sumOf(archive(t, etcd+"/"+s.member)) + "  " + etcd + ".tar.gz\n"
		case strings.HasPrefix(name, "kwok-"):
			content = program
		case strings.HasPrefix(name, "v") && strings.HasPrefix(r.URL.Path, "/tags/"):
			content = fmt.Sprintf(`{"name": %q, "assets": [{"name": "kwokctl-%[2]s", "uploader": {"id": 1}, "digest": "sha256:%[3]s"},
				{"name": "kwok-%[2]s", "uploader": {"id": 1}, "digest": "sha256:%[4]s"}]}`, name, runtime.GOOS+"-"+runtime.GOARCH, sumOf("other"), sumOf(program))
		default:
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(s.Close)
	return s
}

func archive(t *testing.T, member string) string {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	files := tar.NewWriter(zipped)
	err := files.WriteHeader(&tar.Header{Name: member, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))})
	_, errWrite := io.WriteString(files, program)
	if err := errors.Join(err, errWrite, files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// run is one directory into which hack/kube/build writes.
type run struct {
	t   *testing.T
	dir string
	env []string
}

func newRun(t *testing.T, url string) *run {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("hack/kube/build downloads with curl, which is not installed")
	}
	for _, name := range []string{"build", "go.mod"} { // Go runs the test again when they change
		if _, err := os.Stat(filepath.Join(testenv.Root(), "hack", "kube", name)); err != nil {
			t.Fatal(err)
		}
	}
	dir, stub := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(stub, "go"), []byte(goStub), 0o755); err != nil {
		t.Fatal(err)
	}
	realGo, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	return &run{t: t, dir: dir, env: append(os.Environ(),
		"PATH="+stub+":"+os.Getenv("PATH"), "REAL_GO="+realGo, "BUILDS="+filepath.Join(stub, "builds"), "KUBEBUILDER_ASSETS=", "KUBE_FROM=", "NO_PROXY=*", "no_proxy=*",
		"KUBE_RELEASES="+url, "ETCD_RELEASES="+url, "KWOK_RELEASES="+url+"/tags", "KWOK_DOWNLOADS="+url)}
}

// build runs the script and returns its output.
func (r *run) build(env string, binaries ...string) (string, error) {
	cmd := exec.Command(filepath.Join(testenv.Root(), "hack", "kube", "build"), append([]string{r.dir}, binaries...)...)
	cmd.Env = slices.Concat(r.env, []string{env})
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustBuild is build that must succeed and print this.
func (r *run) mustBuild(env, print string, binaries ...string) {
	r.t.Helper()
	if out, err := r.build(env, binaries...); err != nil || !strings.Contains(out, print) {
		r.t.Fatalf("hack/kube/build %v printed, without %q (%v):\n%s", binaries, print, err, out)
	}
}

// want checks the origin of a binary: release or source. Empty: the binary and partial downloads must not exist.
func (r *run) want(binary, from string) {
	r.t.Helper()
	out, err := exec.Command(filepath.Join(r.dir, binary)).Output()
	if from == "" {
		if !errors.Is(err, os.ErrNotExist) {
			r.t.Errorf("%s exists and prints %q (%v)", binary, out, err)
		}
	} else if string(out) != from+"\n" {
		r.t.Errorf("%s prints %q (%v), want %q", binary, out, err, from)
	}
	if parts, _ := filepath.Glob(filepath.Join(r.dir, ".download*")); len(parts) > 0 {
		r.t.Errorf("parts of downloads are left: %v", parts)
	}
}

func TestReleaseBinariesAreDownloadedAndVerified(t *testing.T) {
	t.Parallel()
	r := newRun(t, newSite(t).URL)
	all := []string{"etcd", "kube-apiserver", "kubectl", "kwok"}
	r.mustBuild("", "downloading release binaries", all...)
	for _, binary := range all {
		r.want(binary, "release")
	}
	if out, err := r.build("", all...); out != "" || err != nil {
		t.Errorf("a second run printed %q (%v), want nothing", out, err)
	}
	r.mustBuild("KUBE_FROM=source", "building kubectl from source", "kubectl")
	r.want("kubectl", "source")
	r.want("etcd", "release")
}

// A binary that cannot be downloaded or verified is built from source, unless KUBE_FROM is release.
func TestWithoutAGoodReleaseTheBinaryIsBuilt(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, and no program answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, c := range map[string]struct {
		change func(s *site)
		url    string
		print  string
	}{
		"wrong checksum":   {change: func(s *site) { s.files["kubectl"] = "replaced" }, print: "has the SHA-256 sum " + sumOf("replaced") + ", must be " + sumOf(program)},
		"no checksum":      {change: func(s *site) { delete(s.files, "kubectl.sha256") }, print: "404"},
		"a page for login": {change: func(s *site) { s.files["kubectl.sha256"] = "<html>" }, print: "no SHA-256 sum is published for "},
		"no file":          {change: func(s *site) { delete(s.files, "kubectl") }, print: "404"},
		"no network":       {change: func(*site) {}, url: nowhere, print: "kube: not all release binaries can be downloaded"},
		"no answer":        {change: func(*site) {}, url: "http://" + silent.Addr().String(), print: "timed out"},
		"no name service":  {change: func(*site) {}, url: "http://releases.invalid", print: "kube: not all release binaries can be downloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c.change(s)
			if c.url == "" {
				c.url = s.URL
			}
			r := newRun(t, c.url)
			out, err := r.build("KUBE_FROM=release", "kubectl")
			if err == nil || !strings.Contains(out, c.print) || !strings.Contains(out, "KUBE_FROM=release does not build") {
				t.Errorf("with KUBE_FROM=release: got %[3]s(%[2]v)\nwant an error and %[1]q", c.print, err, out)
			}
			r.want("kubectl", "")
			r.mustBuild("", c.print, "kubectl")
			r.want("kubectl", "source")
		})
	}
}

// A verified archive that does not contain the binary is not installed as the binary.
func TestAnArchiveWithoutTheBinaryIsNotInstalled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.member = "README.md"
	r := newRun(t, s.URL)
	if out, err := r.build("KUBE_FROM=release", "etcd"); err == nil {
		t.Errorf("the build succeeds:\n%s", out)
	}
	r.want("etcd", "")
}

// After a failed build, the next run builds the binary again.
func TestAFailedBuildIsAnError(t *testing.T) {
	t.Parallel()
	for _, binary := range []string{"etcd", "kubectl"} {
		r := newRun(t, "http://127.0.0.1:1")
		if out, err := r.build("BUILD_FAILS=1", binary); err == nil || strings.Contains(out, "built "+binary) {
			t.Errorf("go build of %s fails, and hack/kube/build printed (%v):\n%s", binary, err, out)
		}
		r.mustBuild("KUBE_FROM=source", "building "+binary, binary)
		r.want(binary, "source")
	}
}

// If one download site is unreachable, binaries of other sites are still downloaded.
func TestOneSiteIsEnoughForItsBinaries(t *testing.T) {
	t.Parallel()
	r := newRun(t, newSite(t).URL)
	r.mustBuild("ETCD_RELEASES=http://127.0.0.1:1", "building etcd from source", "etcd", "kubectl")
	r.want("etcd", "source")
	r.want("kubectl", "release")
}

func TestTwoBuildsOfOneDirectoryWaitForEachOther(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("flock is not installed")
	}
	r := newRun(t, "http://127.0.0.1:1")
	r.env = append(r.env, "BUILD_TIME=2")
	var waited [2]string
	var wg sync.WaitGroup
	for i := range waited {
		wg.Go(func() {
			var err error
			if waited[i], err = r.build("KUBE_FROM=source", "kubectl"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(strings.Join(waited[:], ""), "waiting for another run"); n != 1 {
		t.Errorf("%d runs waited, want 1: %q", n, waited)
	}
	if n := strings.Count(strings.Join(waited[:], ""), "building kubectl"); n != 1 {
		t.Errorf("kubectl was built %d times, want once", n)
	}
	r.want("kubectl", "source")
}

func TestABadKubeFromIsRejected(t *testing.T) {
	t.Parallel()
	out, err := newRun(t, "").build("KUBE_FROM=releases", "kubectl")
	if err == nil || !strings.Contains(out, "KUBE_FROM is 'releases', must be release or source") {
		t.Errorf("the script printed %q (%v)", out, err)
	}
}

// If KUBEBUILDER_ASSETS lacks a binary, the build fails and no test is skipped.
func TestAssetsWithoutABinaryAreRejected(t *testing.T) {
	t.Parallel()
	assets := t.TempDir()
	out, err := newRun(t, "").build("KUBEBUILDER_ASSETS="+assets, "kubectl")
	if err == nil || !strings.Contains(out, "KUBEBUILDER_ASSETS is '"+assets+"', which has no kubectl") {
		t.Errorf("the script printed %q (%v)", out, err)
	}
}

// After a failed download, a binary that was built from source is not built again.
func TestAFailedDownloadKeepsWhatWasBuilt(t *testing.T) {
	t.Parallel()
	r := newRun(t, "http://127.0.0.1:1")
	r.mustBuild("KUBE_FROM=source", "building kubectl from source", "kubectl")
	if out, err := r.build("KUBE_FROM=release", "kubectl"); err == nil {
		t.Errorf("KUBE_FROM=release succeeds without a network:\n%s", out)
	}
	if out, err := r.build("", "kubectl"); out != "" || err != nil {
		t.Errorf("the next run printed %q (%v), want nothing", out, err)
	}
}
