package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func write(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tool.tar")
	if err := (archive{Name: "readygate/tool", Tag: "v0.1.0", Index: index}).write(file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestArchiveIsReadAsWritten(t *testing.T) {
	index := build(t, files(t, "tool"), testOptions)
	archive, err := open(write(t, index), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if archive.Name != "readygate/tool" || archive.Tag != "v0.1.0" || digestOf(t, archive.Index) != digestOf(t, index) {
		t.Errorf("read %s:%s@%s, must be readygate/tool:v0.1.0@%s", archive.Name, archive.Tag, digestOf(t, archive.Index), digestOf(t, index))
	}
	if err := validate.Index(archive.Index); err != nil {
		t.Error(err)
	}
}

func TestArchiveNamesTheImage(t *testing.T) {
	file, dir := write(t, build(t, files(t, "tool"), testOptions)), t.TempDir()
	if _, err := open(file, dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"io.containerd.image.name": "docker.io/readygate/tool:v0.1.0", "org.opencontainers.image.ref.name": "v0.1.0"} {
		if got := index.Manifests[0].Annotations[key]; got != want {
			t.Errorf("annotation %s is %q, must be %q", key, got, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "oci-layout")); err != nil || !bytes.Contains(data, []byte(`"imageLayoutVersion"`)) {
		t.Errorf("oci-layout is %q, %v: must say its version", data, err)
	}
}

func TestNothingButTheArchiveIsLeft(t *testing.T) {
	entries, err := os.ReadDir(filepath.Dir(write(t, build(t, files(t, "tool"), testOptions))))
	if err != nil || len(entries) != 1 {
		t.Errorf("directory has %v (%v), must have the archive alone", entries, err)
	}
}

// Two archives that are built within a second would be equal even if they contained times and owners.
func TestArchiveContainsNoTimesOrOwners(t *testing.T) {
	in, err := os.Open(write(t, build(t, files(t, "tool"), testOptions)))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // only read
	reader := tar.NewReader(in)
	entries := 0
	for ; ; entries++ {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%04o %d:%d %s%s %d", header.Mode, header.Uid, header.Gid, header.Uname, header.Gname, header.ModTime.Unix()); got != "0644 0:0  0" {
			t.Errorf("%s has mode, owner and time %q, must be %q", header.Name, got, "0644 0:0  0")
		}
	}
	// Index, two manifests, two configs, two layers of files, one shared base, index.json, oci-layout.
	if entries != 10 {
		t.Errorf("archive has %d entries, must have 10: the base once", entries)
	}
}

func TestOpenRejectsInvalidArchives(t *testing.T) {
	for name, test := range map[string]struct {
		content map[string]string
		want    string
	}{
		"a path out of the directory": {map[string]string{"../x": ""}, "path escapes from parent"},
		"no layout":                   {map[string]string{"x": ""}, "index.json: no such file"},
		"no image":                    {map[string]string{"oci-layout": "{}", "index.json": "{}"}, "has 0 images, must have one"},
		"no name":                     {map[string]string{"oci-layout": "{}", "index.json": `{"manifests":[{}]}`}, `annotation io.containerd.image.name is ""`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.tar")
			out, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			writer := tar.NewWriter(out)
			for name, content := range test.content {
				if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content))}); err != nil {
					t.Fatal(err)
				}
				if _, err := writer.Write([]byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if err := withArchives([]string{file}, nil); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("error is %v, must name the file and say %s", err, test.want)
			}
		})
	}
}
