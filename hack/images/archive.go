package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Annotations with the name of the image: containerd and podman read the whole name of the first, other programs the
// tag of the second.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// host is the host of names without one.
const host = "docker.io/"

// archive is an image with its name: the content of one OCI layout in a tar file.
type archive struct {
	Name  string        // without host and tag, e.g. readygate/readygate-manager
	Tag   string        // e.g. v0.1.0
	Index v1.ImageIndex // with an image for every architecture
}

// write writes the archive to a file, wholly or not at all.
func (a archive) write(file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", file, err)
		}
	}()
	work, err := os.MkdirTemp(filepath.Dir(file), ".archive-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	dir, packed := filepath.Join(work, "layout"), filepath.Join(work, "packed")
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := layout.WithAnnotations(map[string]string{annotationName: host + a.Name + ":" + a.Tag, annotationTag: a.Tag})
	if err := target.AppendIndex(a.Index, names); err != nil {
		return err
	}
	if err := pack(dir, packed); err != nil {
		return err
	}
	return os.Rename(packed, file)
}

// pack writes the files of a directory in the order of their names, without directories, owners and times.
func pack(dir, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	writer := tar.NewWriter(out)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		return writeEntry(writer, entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, ModTime: time.Unix(0, 0)}, content})
	})
	return errors.Join(err, writer.Close(), out.Close())
}

// withArchives reads archives that write made. They are valid as long as do runs.
func withArchives(files []string, do func([]*archive) error) error {
	var archives []*archive
	for _, file := range files {
		dir, err := os.MkdirTemp("", "images-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // temporary files
		archive, err := open(file, dir)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		archives = append(archives, archive)
	}
	return do(archives)
}

// open unpacks an archive into dir, which must exist as long as the index is used.
func open(file, dir string) (*archive, error) {
	if err := unpack(file, dir); err != nil {
		return nil, err
	}
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("has %d images, must have one with its name: make it with images build", len(manifest.Manifests))
	}
	full := manifest.Manifests[0].Annotations[annotationName]
	name, tag, found := strings.Cut(strings.TrimPrefix(full, host), ":")
	if !found {
		return nil, fmt.Errorf("annotation %s is %q, must be a name with a tag: make it with images build", annotationName, full)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	return &archive{Name: name, Tag: tag, Index: index}, err
}

// unpack writes below dir only, whatever the names in the archive are.
func unpack(file, dir string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only a directory
	for reader := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(header.Name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(header.Name, content, 0o644); err != nil {
			return err
		}
	}
}
