package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes the image for all its architectures, with its tag, and returns the reference to pull it by: tag and
// digest. The prefix is a host, and optionally a path. Insecure allows HTTP if the registry does not answer to HTTPS.
func (a archive) push(ctx context.Context, prefix string, insecure bool, options ...remote.Option) (string, error) {
	if strings.Contains(prefix, "://") { // would be parsed as a host named https
		return "", fmt.Errorf("%q is a URL, must be host and path alone, e.g. registry.example.com/team", prefix)
	}
	parse := []name.Option{name.StrictValidation}
	if insecure {
		parse = append(parse, name.Insecure)
	}
	tag, err := name.NewTag(strings.TrimSuffix(prefix, "/")+"/"+a.Name+":"+a.Tag, parse...)
	if err != nil {
		return "", fmt.Errorf("%q is not where images can be pushed to, e.g. registry.example.com/team: %w", prefix, err)
	}
	digest, err := a.Index.Digest()
	if err != nil {
		return "", err
	}
	options = append(options, remote.WithContext(ctx))
	if err := remote.WriteIndex(tag, a.Index, options...); err != nil {
		return "", fmt.Errorf("pushing %s: %w", tag, err)
	}
	return tag.Name() + "@" + digest.String(), nil
}

// serveRegistry is a registry in memory, for tests, without login and TLS. It pushes the images to itself, calls ready
// when they can be pulled, and ends with the context.
func serveRegistry(ctx context.Context, address string, archives []*archive, ready func(address string)) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer server.Close() //nolint:errcheck // the listener ends with it

	// The connections do not depend on the host of the address and the proxies of the environment.
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, listener.Addr().Network(), listener.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	for _, archive := range archives {
		if _, err := archive.push(ctx, "localhost", true, remote.WithTransport(transport)); err != nil {
			return err
		}
	}
	ready(listener.Addr().String())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
