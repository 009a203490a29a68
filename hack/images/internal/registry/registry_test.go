package registry_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/readygate/readygate/hack/images/internal/oci"
	"github.com/readygate/readygate/hack/images/internal/recipe"
	"github.com/readygate/readygate/hack/images/internal/registry"
)

func archive(t *testing.T) (*oci.Archive, v1.Hash) {
	t.Helper()
	image := recipe.Image{
		Name: "readygate/tool", Files: []recipe.File{{From: "registry_test.go", To: "/tool", Mode: "0755"}},
		Entrypoint: []string{"/tool"}, User: "65532:65532",
	}
	index, err := oci.Build(image, nil, oci.Options{Tag: "v0.1.0", Architectures: []string{"amd64", "arm64"}})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return &oci.Archive{Name: image.Name, Tag: "v0.1.0", Index: index}, digest
}

// serve starts a registry with the images and returns its address. The registry must end
// without an error when the test does.
func serve(t *testing.T, archives ...*oci.Archive) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- registry.Serve(ctx, listener, archives, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("ended before it served: %v", err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return listener.Addr().String()
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
	image, digest := archive(t)
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
	image, digest := archive(t)
	address := serve(t)
	for _, prefix := range []string{"/team", "/team/"} {
		got, err := registry.Push(t.Context(), image, registry.Destination{Prefix: address + prefix, Insecure: true})
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
	image, _ := archive(t)
	for _, prefix := range []string{"team", "", "https://registry.example.com/team"} {
		_, err := registry.Push(t.Context(), image, registry.Destination{Prefix: prefix})
		if err == nil || !strings.Contains(err.Error(), "e.g. registry.example.com/team") {
			t.Errorf("pushing to %q: error is %v, must say what is right", prefix, err)
		}
	}
}
