// Package registry brings archives into registries: one that is there, or one of its own in
// memory.
package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/readygate/readygate/hack/images/internal/oci"
)

// Destination is where images are pushed to.
type Destination struct {
	// Prefix is what comes before the image's name: a host, and a path if need be, e.g.
	// registry.example.com for registry.example.com/readygate/readygate-manager.
	Prefix string
	// Insecure allows HTTP where the registry does not answer to HTTPS.
	Insecure bool
}

// Push pushes the image for all its architectures, with its tag, and returns what to pull it
// by: tag and digest. Credentials are those that docker login or podman login keep.
func Push(ctx context.Context, archive *oci.Archive, to Destination) (string, error) {
	if strings.Contains(to.Prefix, "://") { // would be taken for a host named https
		return "", fmt.Errorf("%q is a URL, must be host and path alone, e.g. registry.example.com/team", to.Prefix)
	}
	options := []name.Option{name.StrictValidation}
	if to.Insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(strings.TrimSuffix(to.Prefix, "/")+"/"+archive.Name+":"+archive.Tag, options...)
	if err != nil {
		return "", fmt.Errorf("%q is not where images can be pushed to, e.g. registry.example.com/team: %w", to.Prefix, err)
	}
	return push(ctx, archive, tag, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

func push(ctx context.Context, archive *oci.Archive, tag name.Tag, options ...remote.Option) (string, error) {
	digest, err := archive.Index.Digest()
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(tag, archive.Index, append(options, remote.WithContext(ctx))...); err != nil {
		return "", fmt.Errorf("pushing %s: %w", tag, err)
	}
	return tag.Name() + "@" + digest.String(), nil
}
