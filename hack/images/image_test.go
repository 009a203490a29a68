package main

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var testOptions = options{Tag: "v0.1.0", Revision: "abc", Architectures: []string{"amd64", "arm64"}, Created: time.Unix(0, 0).UTC()}

// files writes a file for each architecture and returns an image that copies it.
func files(t *testing.T, content string) image {
	t.Helper()
	dir := t.TempDir()
	for _, arch := range testOptions.Architectures {
		if err := os.WriteFile(filepath.Join(dir, arch), []byte(content+" for "+arch), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return image{
		Name: "readygate/tool", Title: "Tool", Base: true,
		Files:      []file{{From: filepath.Join(dir, "{{.Arch}}"), To: "/opt/bin/tool", Mode: "0755"}},
		Links:      map[string]string{"/tool": "/opt/bin/tool", "/tmp/tool": "../tool"},
		Entrypoint: []string{"/tool", "--fast"}, User: "65532:65532",
	}
}

func build(t *testing.T, image image, options options) v1.ImageIndex {
	t.Helper()
	index, err := image.build(map[string]string{"org.opencontainers.image.licenses": "Apache-2.0"}, options)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func imageFor(t *testing.T, index v1.ImageIndex, arch string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform != nil && descriptor.Platform.String() == "linux/"+arch {
			image, err := index.Image(descriptor.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("the index has no image for linux/%s", arch)
	return nil
}

// list is what is in a layer: kind, mode, owner, time, path, and where a link leads to.
func list(t *testing.T, layer v1.Layer) (entries []string, contents map[string]string) {
	t.Helper()
	in, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // only read
	contents = map[string]string{}
	reader := tar.NewReader(in)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		contents["/"+header.Name] = string(content)
		if header.Uname+header.Gname != "" {
			t.Errorf("%s has the names of its owners: %s:%s", header.Name, header.Uname, header.Gname)
		}
		entries = append(entries, strings.TrimSpace(fmt.Sprintf("%c %04o %d:%d %d /%s %s", header.Typeflag, header.Mode, header.Uid, header.Gid, header.ModTime.Unix(), header.Name, header.Linkname)))
	}
}

func TestIndexHasAnImageForEveryArchitecture(t *testing.T) {
	index := build(t, files(t, "tool"), testOptions)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIImageIndex || len(manifest.Manifests) != 2 {
		t.Errorf("index is a %s of %d images, must be an OCI index of 2", manifest.MediaType, len(manifest.Manifests))
	}
	if got := manifest.Annotations["org.opencontainers.image.title"]; got != "Tool" {
		t.Errorf("annotated title is %q, must be Tool", got)
	}
	for _, arch := range testOptions.Architectures {
		image := imageFor(t, index, arch)
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS != "linux" || config.Architecture != arch {
			t.Errorf("image for %s is labelled %s/%s", arch, config.OS, config.Architecture)
		}
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		if _, contents := list(t, layers[len(layers)-1]); contents["/opt/bin/tool"] != "tool for "+arch {
			t.Errorf("binary for %s is %q", arch, contents["/opt/bin/tool"])
		}
	}
}

func TestConfig(t *testing.T) {
	config, err := imageFor(t, build(t, files(t, "tool"), testOptions), "arm64").ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(config.Config.User, config.Config.Entrypoint, config.Created.Unix())
	if want := "65532:65532[/tool --fast] 0"; got != want {
		t.Errorf("user, entrypoint and time are %s, must be %s", got, want)
	}
	want := map[string]string{"title": "Tool", "version": "v0.1.0", "revision": "abc", "licenses": "Apache-2.0"}
	for key, value := range want {
		if got := config.Config.Labels["org.opencontainers.image."+key]; got != value {
			t.Errorf("label %s is %q, must be %q", key, got, value)
		}
	}
	if len(config.Config.Labels) != len(want) {
		t.Errorf("labels are %v: what is not known must be left out", config.Config.Labels)
	}
}

func TestFilesLayer(t *testing.T) {
	layers, err := imageFor(t, build(t, files(t, "tool"), testOptions), "amd64").Layers()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := list(t, layers[1])
	want := []string{
		"5 0755 0:0 0 /opt/",
		"5 0755 0:0 0 /opt/bin/",
		"0 0755 0:0 0 /opt/bin/tool",
		"2 0777 0:0 0 /tmp/tool ../tool", // /tmp itself stays as the base has it
		"2 0777 0:0 0 /tool /opt/bin/tool",
	}
	if !slices.Equal(got, want) {
		t.Errorf("layer has\n%s\nmust have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBaseLayer(t *testing.T) {
	index := build(t, files(t, "tool"), testOptions)
	layers, err := imageFor(t, index, "amd64").Layers()
	if err != nil {
		t.Fatal(err)
	}
	got, contents := list(t, layers[0])
	want := []string{
		"5 0755 0:0 0 /etc/",
		"0 0644 0:0 0 /etc/group",
		"0 0644 0:0 0 /etc/nsswitch.conf",
		"0 0644 0:0 0 /etc/passwd",
		"5 0755 0:0 0 /etc/ssl/",
		"5 0755 0:0 0 /etc/ssl/certs/",
		"0 0644 0:0 0 /etc/ssl/certs/ca-certificates.crt",
		"5 0755 0:0 0 /home/",
		"5 0700 65532:65532 0 /home/nonroot/",
		"5 0700 0:0 0 /root/",
		"5 1777 0:0 0 /tmp/",
	}
	if !slices.Equal(got, want) {
		t.Errorf("layer has\n%s\nmust have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(contents["/etc/passwd"], "\nnonroot:x:65532:65532:") {
		t.Errorf("/etc/passwd has no user nonroot: %s", contents["/etc/passwd"])
	}
	certificates := contents["/etc/ssl/certs/ca-certificates.crt"]
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(certificates)) || strings.Count(certificates, "BEGIN CERTIFICATE") < 50 {
		t.Error("there are no root certificates")
	}
	if digestOf(t, layers[0]) != digestOf(t, baseOf(t, index, "arm64")) {
		t.Error("the base differs between architectures: nodes and registries must keep it once")
	}
}

func baseOf(t *testing.T, index v1.ImageIndex, arch string) v1.Layer {
	t.Helper()
	layers, err := imageFor(t, index, arch).Layers()
	if err != nil {
		t.Fatal(err)
	}
	return layers[0]
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestDigestFollowsTheInput(t *testing.T) {
	tool := files(t, "tool")
	first := build(t, tool, testOptions)
	change := func(change func(*image, *options)) v1.ImageIndex {
		image, options := tool, testOptions
		change(&image, &options)
		return build(t, image, options)
	}
	for name, other := range map[string]v1.ImageIndex{
		"another content":  build(t, files(t, "new tool"), testOptions),
		"another mode":     change(func(i *image, _ *options) { i.Files = slices.Clone(i.Files); i.Files[0].Mode = "0555" }),
		"another user":     change(func(i *image, _ *options) { i.User = "0:0" }),
		"another time":     change(func(_ *image, o *options) { o.Created = time.Unix(1, 0) }),
		"another revision": change(func(_ *image, o *options) { o.Revision = "def" }),
		"no base":          change(func(i *image, _ *options) { i.Base = false }),
	} {
		if digestOf(t, first) == digestOf(t, other) {
			t.Errorf("%s has the same digest", name)
		}
	}
	if upgraded := build(t, files(t, "new tool"), testOptions); digestOf(t, baseOf(t, first, "amd64")) != digestOf(t, baseOf(t, upgraded, "amd64")) {
		t.Error("an upgrade does not share the base")
	}
}

func TestBuildRejectsInvalidInput(t *testing.T) {
	host, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hostOnly := filepath.Join(t.TempDir(), "{{.Arch}}")
	for _, arch := range testOptions.Architectures {
		if err := os.Symlink(host, strings.ReplaceAll(hostOnly, "{{.Arch}}", arch)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		change func(*image, *options)
		want   string
	}{
		"a missing file": {
			func(i *image, _ *options) { i.Files[0].From = "missing/{{.Arch}}" },
			"building readygate/tool for amd64: files[0].from: open missing/amd64: no such file or directory"},
		"no source": {
			func(i *image, _ *options) { i.Files[0].From = "" },
			"files[0].from: open : no such file or directory"},
		"another variable": {
			func(i *image, _ *options) { i.Files[0].From = "bin/{{.OS}}/tool" },
			"files[0].from: open bin/{{.OS}}/tool: no such file or directory"},
		"a directory": {
			func(i *image, _ *options) { i.Files[0].From = "." },
			"files[0].from: read .: is a directory"},
		"a binary for another machine": {
			func(i *image, _ *options) { i.Files[0].From = hostOnly },
			"is a binary for EM_"},
		"a file below a file": {
			func(i *image, _ *options) { i.Links = map[string]string{"/opt/bin/tool/x": "y"} },
			"/opt/bin/tool/x cannot be there: /opt/bin/tool is not a directory"},
		"a file below a file of the base": {
			func(i *image, _ *options) { i.Links = map[string]string{"/etc/passwd/x": "y"} },
			"/etc/passwd/x cannot be there: /etc/passwd is not a directory"},
		"an unknown architecture": {
			func(_ *image, o *options) { o.Architectures = []string{"x86"} },
			`architecture "x86" is not one of ["amd64" "arm64"]`},
		"a tag that is none": {
			func(_ *image, o *options) { o.Tag = "v1+2" },
			`tag "v1+2" cannot be the tag of an image, e.g. v0.1.0`},
	} {
		t.Run(name, func(t *testing.T) {
			image, options := files(t, "tool"), testOptions
			test.change(&image, &options)
			_, err := image.build(nil, options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, must say %s", err, test.want)
			}
		})
	}
}
