package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const testRecipe = `images:
- name: readygate/tool
  base: true
  files:
  - {from: "bin/{{.Arch}}", to: /tool, mode: "0755"}
  links: {/z: /tool, /a: /tool}
  entrypoint: [/tool]
`

// workspace is a directory, entered by the test, with a recipe and its files.
func workspace(t *testing.T, changed time.Time) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"images.yaml": testRecipe, "bin/amd64": "for amd64", "bin/arm64": "for arm64"} {
		if err := os.WriteFile(name, []byte(content), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
}

func images(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, args...); err != nil {
		t.Fatalf("images %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

func run(ctx context.Context, out io.Writer, args ...string) error {
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(out)
	return command.ExecuteContext(ctx)
}

func TestSameInputMakesTheSameArchive(t *testing.T) {
	var archives [][]byte
	var tables []string
	for _, at := range []struct {
		umask   int
		zone    *time.Location
		changed time.Time
	}{
		{0o022, time.UTC, time.Unix(0, 0)},
		{0o077, time.FixedZone("far away", 11*3600), time.Now()},
		{0, time.FixedZone("behind", -9*3600), time.Unix(1e9, 5)},
	} {
		func() {
			defer syscall.Umask(syscall.Umask(at.umask))
			defer func(zone *time.Location) { time.Local = zone }(time.Local)
			time.Local = at.zone
			workspace(t, at.changed)
			tables = append(tables, images(t, "build", "--recipe", "images.yaml", "--out", "out", "--tag", "v0.1.0"))
			archive, err := os.ReadFile("out/tool.tar")
			if err != nil {
				t.Fatal(err)
			}
			archives = append(archives, archive)
		}()
	}
	for i := range archives {
		if !bytes.Equal(archives[0], archives[i]) {
			t.Errorf("archive %d differs from the first:\n%s\n%s", i, tables[0], tables[i])
		}
	}
	if !strings.Contains(tables[0], "readygate/tool:v0.1.0") || !strings.Contains(tables[0], "linux/arm64") {
		t.Errorf("table does not name image and platforms:\n%s", tables[0])
	}
}

func TestSourceDateEpoch(t *testing.T) {
	workspace(t, time.Unix(0, 0))
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	images(t, "build", "--recipe", "images.yaml", "--out", "out", "--tag", "v0.1.0", "--arch", "arm64")
	image := only(t, "out/tool.tar")
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Created.Format(time.RFC3339); got != "2026-01-01T00:00:00Z" {
		t.Errorf("image is of %s, must be of 2026-01-01T00:00:00Z", got)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run(t.Context(), io.Discard, "build", "--recipe", "images.yaml", "--out", "out", "--tag", "v0.1.0"); err == nil || !strings.Contains(err.Error(), `SOURCE_DATE_EPOCH is "yesterday", must be seconds since 1970`) {
		t.Errorf("error is %v, must name the variable", err)
	}
}

func TestSources(t *testing.T) {
	workspace(t, time.Unix(0, 0))
	if got, want := images(t, "sources", "--recipe", "images.yaml"), "amd64 bin/amd64\narm64 bin/arm64\n"; got != want {
		t.Errorf("sources are\n%smust be\n%s", got, want)
	}
}

func TestServeAndPush(t *testing.T) {
	workspace(t, time.Unix(0, 0))
	images(t, "build", "--recipe", "images.yaml", "--out", "out", "--tag", "v0.1.0")

	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, writer, "serve", "127.0.0.1:0", "out/tool.tar") }()
	var address string
	if _, err := fmt.Fscanf(reader, "serving 1 images on %s\n", &address); err != nil {
		t.Fatal(err)
	}
	pushed := images(t, "push", "--insecure", "--to", address+"/team", "out/tool.tar")
	if !strings.HasPrefix(pushed, "pushed "+address+"/team/readygate/tool:v0.1.0@sha256:") {
		t.Errorf("push prints %q", pushed)
	}
	for _, path := range []string{"/v2/readygate/tool/manifests/v0.1.0", "/v2/team/readygate/tool/manifests/v0.1.0"} {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s is %s", path, response.Status)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func TestWrongArguments(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"bild", `unknown command "bild"`},
		{"build --out x --tag v1", `required flag(s) "recipe" not set`},
		{"build --recipe x --out x", `required flag(s) "tag" not set`},
		{"build --recip x", "unknown flag: --recip"},
		{"push x.tar", `required flag(s) "to" not set`},
		{"push --to registry.example.com", "requires at least 1 arg(s)"},
		{"serve", "requires at least 1 arg(s)"},
	} {
		err := run(t.Context(), io.Discard, strings.Fields(test.args)...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("images %s: error is %v, must say %s", test.args, err, test.want)
		}
	}
}

func only(t *testing.T, file string) v1.Image {
	t.Helper()
	archive, err := open(file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := archive.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%s has %d images, must have one", file, len(manifest.Manifests))
	}
	image, err := archive.Index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}
