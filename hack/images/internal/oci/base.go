package oci

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	passwd = "root:x:0:0:root:/root:/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	group = "root:x:0:\n" +
		"nonroot:x:65532:\n"
	// Without it some resolvers ask DNS before /etc/hosts.
	nsswitch = "hosts: files dns\n"
)

// baseTree is what static binaries expect of a system. It is the same for every image and
// architecture, so nodes and registries keep it once.
func baseTree() (tree, error) {
	certificates, err := rootCertificates()
	if err != nil {
		return nil, err
	}
	base := tree{}
	base.file("/etc/passwd", 0o644, []byte(passwd))
	base.file("/etc/group", 0o644, []byte(group))
	base.file("/etc/nsswitch.conf", 0o644, []byte(nsswitch))
	base.file("/etc/ssl/certs/ca-certificates.crt", 0o644, certificates)
	base.directory("/tmp", 0o1777)
	base.directory("/root", 0o700)
	base["/home/nonroot"] = entry{kind: tar.TypeDir, mode: 0o700, owner: 65532}
	return base, base.addParents(nil)
}

// rootCertificates are those that Mozilla trusts, at the version of the module. A root that is
// trusted for a part of its certificates only is left out: the file cannot say which part.
func rootCertificates() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("writing root certificates: %w", err)
		}
	}
	return out.Bytes(), nil
}
