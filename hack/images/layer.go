package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	passwd = "root:x:0:0:root:/root:/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	group = "root:x:0:\n" +
		"nonroot:x:65532:\n"
	// Without it some resolvers query DNS before /etc/hosts.
	nsswitch = "hosts: files dns\n"
)

// tree is the content of a layer, by absolute path.
type tree map[string]entry

// entry has the fields of the header but name, size and time.
type entry struct {
	tar.Header
	content []byte
}

func (t tree) file(path string, mode int64, content []byte) {
	t[path] = entry{tar.Header{Typeflag: tar.TypeReg, Mode: mode}, content}
}

func (t tree) link(path, target string) {
	t[path] = entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}}
}

func (t tree) directory(path string, mode int64, owner int) {
	t[path] = entry{Header: tar.Header{Typeflag: tar.TypeDir, Mode: mode, Uid: owner, Gid: owner}}
}

// baseTree is what static binaries expect of a system. It is the same for every image and architecture, so that nodes
// and registries store it once.
func (i image) baseTree() (tree, error) {
	base := tree{}
	if !i.Base {
		return base, nil
	}
	// The roots that Mozilla trusts, at the version of the module. A root that is trusted for a part of its
	// certificates only is left out: the file cannot contain the constraint.
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("writing root certificates: %w", err)
		}
	}
	base.file("/etc/passwd", 0o644, []byte(passwd))
	base.file("/etc/group", 0o644, []byte(group))
	base.file("/etc/nsswitch.conf", 0o644, []byte(nsswitch))
	base.file("/etc/ssl/certs/ca-certificates.crt", 0o644, certificates.Bytes())
	base.directory("/tmp", 0o1777, 0)
	base.directory("/root", 0o700, 0)
	base.directory("/home/nonroot", 0o700, 65532)
	return base, base.addParents(nil)
}

// addParents adds the directories above every entry, except those of the layer below: a second entry would change
// their mode, e.g. that of /tmp.
func (t tree) addParents(below tree) error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			present, found := t[dir]
			if !found {
				present, found = below[dir]
			}
			if found && present.Typeflag != tar.TypeDir {
				return fmt.Errorf("%s cannot be there: %s is not a directory", name, dir)
			}
			if !found {
				t.directory(dir, 0o755, 0)
			}
		}
	}
	return nil
}

// layer packs the tree: sorted, with one time for all entries.
func (t tree) layer(created time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, path := range slices.Sorted(maps.Keys(t)) {
		e := t[path]
		e.Name, e.ModTime = path[1:], created
		if e.Typeflag == tar.TypeDir {
			e.Name += "/"
		}
		if err := writeEntry(writer, e); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

func writeEntry(writer *tar.Writer, e entry) error {
	e.Size = int64(len(e.content))
	if err := writer.WriteHeader(&e.Header); err != nil {
		return fmt.Errorf("packing %s: %w", e.Name, err)
	}
	if _, err := writer.Write(e.content); err != nil {
		return fmt.Errorf("packing %s: %w", e.Name, err)
	}
	return nil
}
