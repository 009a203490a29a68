package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Annotations by which those who load an archive name the image: containerd and podman take
// the whole name of the first, others the tag of the second.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// A name without a host means this one, to containerd as to everybody else.
const host = "docker.io/"

// Archive is an image with its name: the content of one OCI layout in a tar file.
type Archive struct {
	// Name is without host and tag, e.g. readygate/readygate-manager.
	Name string
	// Tag is e.g. v0.1.0.
	Tag string
	// Index has an image for every architecture.
	Index v1.ImageIndex
}

// Write writes the archive to a file, wholly or not at all.
func (a Archive) Write(file string) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(file), ".archive-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	dir := filepath.Join(work, "layout")
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	names := layout.WithAnnotations(map[string]string{annotationName: host + a.Name + ":" + a.Tag, annotationTag: a.Tag})
	if err := target.AppendIndex(a.Index, names); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	packed := filepath.Join(work, "packed")
	if err := pack(dir, packed); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return os.Rename(packed, file)
}

// pack writes the files of a directory in the order of their names. Directories are not
// written: whoever unpacks makes them.
func pack(dir, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // closed below; this is for errors before
	writer := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return packFile(writer, dir, path)
	})
	if err != nil {
		return err
	}
	return errors.Join(writer.Close(), out.Close())
}

func packFile(writer *tar.Writer, dir, path string) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(writer, in)
	return err
}

// Open reads an archive that Write made. Its content is read from dir, which must live as long
// as the index is used.
func Open(file, dir string) (*Archive, error) {
	archive, err := open(file, dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return archive, nil
}

func open(file, dir string) (*Archive, error) {
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
	descriptor := manifest.Manifests[0]
	full := descriptor.Annotations[annotationName]
	name, tag, found := strings.Cut(strings.TrimPrefix(full, host), ":")
	if !found {
		return nil, fmt.Errorf("annotation %s is %q, must be a name with a tag: make it with images build", annotationName, full)
	}
	index, err := root.ImageIndex(descriptor.Digest)
	if err != nil {
		return nil, err
	}
	return &Archive{Name: name, Tag: tag, Index: index}, nil
}

// unpack writes below dir only, whatever the names in the archive say.
func unpack(file, dir string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only a directory
	reader := tar.NewReader(in)
	for {
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
		if err := unpackFile(root, header.Name, reader); err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
