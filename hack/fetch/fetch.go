package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// sumsTimeout bounds the time for all checksums, which are fetched first: on a machine without network the
// caller builds from source instead, and must not wait for long.
const sumsTimeout = 5 * time.Second

// stallTimeout is how long a download may stand still.
const stallTimeout = 30 * time.Second

// errUnavailable is that a release cannot be had, from here or at all.
var errUnavailable = errors.New("the release binaries are not available")

// releases says where release binaries are.
type releases struct {
	Kubernetes, Etcd       string // versions
	KubernetesURL, EtcdURL string
	OS, Arch               string
	Out                    io.Writer
}

// source is where one binary is, and how to verify what is downloaded.
type source struct {
	url string
	// sums is the address of checksums: either the sum alone, or lines of sum and file name.
	sums string
	// member is the base name of the binary in the archive at url; empty if the file is the binary.
	member string
}

func (r *releases) sourceOf(binary string) source {
	if binary == "etcd" {
		file := fmt.Sprintf("etcd-%s-%s-%s.tar.gz", r.Etcd, r.OS, r.Arch)
		return source{url: r.EtcdURL + "/" + r.Etcd + "/" + file, sums: r.EtcdURL + "/" + r.Etcd + "/SHA256SUMS", member: "etcd"}
	}
	url := fmt.Sprintf("%s/%s/bin/%s/%s/%s", r.KubernetesURL, r.Kubernetes, r.OS, r.Arch, binary)
	return source{url: url, sums: url + ".sha256"}
}

// fetch downloads the binaries into a directory. Nothing is downloaded unless all checksums are known.
func (r *releases) fetch(ctx context.Context, dir string, binaries []string) error {
	if r.OS != "linux" {
		return fmt.Errorf("%w for %s", errUnavailable, r.OS)
	}
	sums := map[string]string{}
	short, cancel := context.WithTimeout(ctx, sumsTimeout)
	defer cancel()
	for _, binary := range binaries {
		sum, err := checksum(short, r.sourceOf(binary))
		if err != nil {
			return fmt.Errorf("%w: %w", errUnavailable, err)
		}
		sums[binary] = sum
	}
	for _, binary := range binaries {
		began := time.Now()
		if err := download(ctx, r.sourceOf(binary), sums[binary], filepath.Join(dir, binary)); err != nil {
			return fmt.Errorf("downloading %s: %w", binary, err)
		}
		fmt.Fprintf(r.Out, "kube: downloaded and verified %s in %v\n", binary, time.Since(began).Round(time.Second)) //nolint:errcheck // progress
	}
	return nil
}

var client = &http.Client{Transport: func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: sumsTimeout}).DialContext
	t.ResponseHeaderTimeout = stallTimeout
	return t
}()}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

// checksum is the published SHA-256 sum of a file.
func checksum(ctx context.Context, s source) (string, error) {
	body, err := get(ctx, s.sums)
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(io.LimitReader(body, 1<<20))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || len(words) > 1 && strings.TrimPrefix(words[1], "*") != path.Base(s.url) {
			continue
		}
		if sum, err := hex.DecodeString(words[0]); err == nil && len(sum) == sha256.Size {
			return words[0], nil
		}
	}
	return "", errors.Join(fmt.Errorf("%s has no SHA-256 sum of %s", s.sums, path.Base(s.url)), lines.Err())
}

// download writes the binary to a file, if what is downloaded has the sum.
func download(ctx context.Context, s source, sum, to string) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := get(ctx, s.url)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read
	part, err := os.CreateTemp(filepath.Dir(to), ".fetch-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.Close(), os.Remove(part.Name())) }()
	stalled := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("%s stands still for %v", s.url, stallTimeout)) })
	defer stalled.Stop()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(part, hash, touch(func() { stalled.Reset(stallTimeout) })), body); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s has the SHA-256 sum %s, and %s says %s: the file is damaged or not what was released", s.url, got, s.sums, sum)
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return install(part, s.member, to)
}

// touch calls a function for each write.
type touch func()

func (t touch) Write(p []byte) (int, error) {
	t()
	return len(p), nil
}

// install writes the binary, or the member of the archive, as an executable file.
func install(from io.Reader, member, to string) (err error) {
	if member != "" {
		if from, err = open(from, member); err != nil {
			return err
		}
	}
	file, err := os.CreateTemp(filepath.Dir(to), ".fetch-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), to)
}

// open finds the member in an archive.
func open(archive io.Reader, member string) (io.Reader, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for %s in the archive: %w", member, err)
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == member {
			return files, nil
		}
	}
}
