package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/version"
)

// maxBody is the maximum number of bytes read of a body and discarded, so that a server can finish a short response.
const maxBody = 1 << 10

// errElsewhere rejects a probe of another host: it would not reach the component of this node.
var errElsewhere = errors.New("the URL is not one of the node's localhost")

// localhost is the transport to the components of this node. Each probe opens and closes a connection: a connection
// that is already open proves less. It uses no proxy of the environment.
var localhost = &http.Transport{
	DialContext:            (&net.Dialer{Timeout: limit, Control: onLocalhost}).DialContext,
	TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // dials only localhost, where certificates are usually self-signed
	TLSHandshakeTimeout:    limit,
	DisableKeepAlives:      true,
	DisableCompression:     true,
	MaxResponseHeaderBytes: 64 << 10,
}

// onLocalhost rejects connections to other machines. It checks the resolved address.
func onLocalhost(_, address string, _ syscall.RawConn) error {
	where, err := netip.ParseAddrPort(address)
	if err != nil || !where.Addr().Unmap().IsLoopback() {
		return errElsewhere
	}
	return nil
}

// get sends a GET request. A status of 200 to 299 is a yes. It does not follow redirects.
func get(ctx context.Context, url string) podrule.Answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return no("the URL is not valid")
	}
	request.Header.Set("User-Agent", userAgent())
	response, err := localhost.RoundTrip(request)
	var port *net.AddrError
	switch {
	case errors.Is(err, errElsewhere):
		return no(errElsewhere.Error())
	case errors.As(err, &port):
		return no("the port of the URL is not valid")
	case err != nil:
		return no(explain(ctx, err, limit))
	}
	defer response.Body.Close() //nolint:errcheck // only read
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	switch status := response.StatusCode; status / 100 {
	case 2:
		return yes
	case 3:
		return no(fmt.Sprintf("returned %d, and podgate does not follow redirects", status))
	default:
		return no(fmt.Sprintf("returned %d", status))
	}
}

func userAgent() string { return "readygate-podgate/" + version.Version }
