package registry

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/readygate/readygate/hack/images/internal/oci"
)

// Serve is a registry in memory, for tests: no login, no TLS. It has the images under their
// names, calls ready when they can be pulled, and ends with the context.
func Serve(ctx context.Context, listener net.Listener, archives []*oci.Archive, ready func()) error {
	server := &http.Server{
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	err := load(ctx, listener.Addr(), archives)
	if err == nil {
		ready()
		select {
		case err = <-ended:
			return err
		case <-ctx.Done():
		}
	}
	return errors.Join(err, server.Close())
}

// load pushes the images to the registry itself. The connection goes to the listener whatever
// the host in the name and the proxies of the environment are.
func load(ctx context.Context, address net.Addr, archives []*oci.Archive) error {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, address.Network(), address.String())
	}}
	defer transport.CloseIdleConnections()
	for _, archive := range archives {
		tag, err := name.NewTag("localhost/"+archive.Name+":"+archive.Tag, name.StrictValidation, name.Insecure)
		if err != nil {
			return err
		}
		if _, err := push(ctx, archive, tag, remote.WithTransport(transport)); err != nil {
			return err
		}
	}
	return nil
}
