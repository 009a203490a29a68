// Package oci makes images and their archives. What it makes depends on nothing but its
// arguments and the content of the files that a recipe names: no clock, user, umask, time zone
// or order of a directory reaches a digest.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// tree is the content of a layer, by absolute path.
type tree map[string]entry

type entry struct {
	kind    byte // of package tar
	mode    int64
	owner   int // and group
	content []byte
	target  string
}

func (t tree) file(path string, mode int64, content []byte) {
	t[path] = entry{kind: tar.TypeReg, mode: mode, content: content}
}

func (t tree) link(path, target string) {
	t[path] = entry{kind: tar.TypeSymlink, mode: 0o777, target: target}
}

func (t tree) directory(path string, mode int64) {
	t[path] = entry{kind: tar.TypeDir, mode: mode}
}

// addParents adds the directories above every entry, but for those of the layer below: said
// again, they would get another mode, and /tmp would no longer be everybody's.
func (t tree) addParents(below tree) error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			present, found := t[dir]
			if !found {
				present, found = below[dir]
			}
			if found && present.kind != tar.TypeDir {
				return fmt.Errorf("%s cannot be there: %s is not a directory", name, dir)
			}
			if !found {
				t.directory(dir, 0o755)
			}
		}
	}
	return nil
}

// layer packs the tree: sorted, with one time for all, and nothing of the file system it came from.
func (t tree) layer(created time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		e := t[name]
		header := &tar.Header{
			Typeflag: e.kind, Name: strings.TrimPrefix(name, "/"), Linkname: e.target,
			Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: created,
		}
		if e.kind == tar.TypeDir {
			header.Name += "/"
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}
