package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func testArchive(t *testing.T) (*archive, v1.Hash) {
	t.Helper()
	image := image{
		Name: "readygate/tool", Files: []file{{From: "registry_test.go", To: "/tool", Mode: "0755"}},
		Entrypoint: []string{"/tool"}, User: "65532:65532",
	}
	index, err := image.build(nil, options{Tag: "v0.1.0", Architectures: []string{"amd64", "arm64"}})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return &archive{Name: image.Name, Tag: "v0.1.0", Index: index}, digest
}

// serve starts a registry with the images and returns its address. The registry must end
// without an error when the test does.
func serve(t *testing.T, archives ...*archive) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- serveRegistry(ctx, "127.0.0.1:0", archives, func(address string) { ready <- address })
	}()
	var address string
	select {
	case address = <-ready:
	case err := <-ended:
		t.Fatalf("ended before it served: %v", err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return address
}

// pull checks that the image is there under the reference, whole, for both architectures.
func pull(t *testing.T, reference string, digest v1.Hash) {
	t.Helper()
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := index.Digest(); err != nil || got != digest {
		t.Errorf("%s has digest %s (%v), must be %s", reference, got, err, digest)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		if config, err := image.ConfigFile(); err != nil || config.Architecture != arch {
			t.Errorf("image for %s cannot be used: %v, %v", arch, config, err)
		}
	}
}

func TestServedImageCanBePulled(t *testing.T) {
	image, digest := testArchive(t)
	address := serve(t, image)
	pull(t, address+"/readygate/tool:v0.1.0", digest)

	response, err := http.Get("http://" + address + "/v2/readygate/tool/manifests/v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != string(types.OCIImageIndex) {
		t.Errorf("manifest is %s, %s, must be an OCI index", response.Status, got)
	}
}

func TestPushedImageCanBePulled(t *testing.T) {
	image, digest := testArchive(t)
	address := serve(t)
	for _, prefix := range []string{"/team", "/team/"} {
		got, err := image.push(t.Context(), address+prefix, true)
		if err != nil {
			t.Fatal(err)
		}
		if want := address + "/team/readygate/tool:v0.1.0@" + digest.String(); got != want {
			t.Errorf("pushed %s, must be %s", got, want)
		}
	}
	pull(t, address+"/team/readygate/tool:v0.1.0", digest)
	pull(t, address+"/team/readygate/tool@"+digest.String(), digest)
}

func TestPushRejectsInvalidPrefixes(t *testing.T) {
	image, _ := testArchive(t)
	for _, prefix := range []string{"team", "", "https://registry.example.com/team"} {
		_, err := image.push(t.Context(), prefix, false)
		if err == nil || !strings.Contains(err.Error(), "e.g. registry.example.com/team") {
			t.Errorf("pushing to %q: error is %v, must say what is right", prefix, err)
		}
	}
}
