package manager

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/nodecache"
)

// wrapTransport adds the manager's HTTP transports to the configuration. Their order is a safety property: the fence
// is the innermost, so that nothing can delay a write between the check of the lease and the connection. The client
// of the lease is made before: it has no fence.
func wrapTransport(config *rest.Config, fence *leadership.Fence) {
	for _, wrap := range []func(http.RoundTripper) http.RoundTripper{
		fence.Wrap,     // rejects writes while the lease may have expired
		nodecache.Wrap, // cuts responses to writes of nodes
	} {
		config.Wrap(wrap)
	}
}
