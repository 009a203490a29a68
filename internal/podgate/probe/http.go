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

// maxBody is how much of a body is read, and thrown away: who answers need not see it cut off.
const maxBody = 1 << 10

// errElsewhere ends a question to another host: what answers there is not the component of this node.
var errElsewhere = errors.New("the URL is not one of the node's localhost")

// localhost asks the components of this node. Each question has a connection of its own: one that was
// opened before proves less, and none is left. It takes no proxy from the environment.
var localhost = &http.Transport{
	DialContext:            (&net.Dialer{Timeout: limit, Control: onLocalhost}).DialContext,
	TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // only localhost can be dialled, and who is there has made its certificate itself
	TLSHandshakeTimeout:    limit,
	DisableKeepAlives:      true,
	DisableCompression:     true,
	MaxResponseHeaderBytes: 64 << 10,
}

// onLocalhost refuses to connect to any other machine, whatever a name stands for.
func onLocalhost(_, address string, _ syscall.RawConn) error {
	where, err := netip.ParseAddrPort(address)
	if err != nil || !where.Addr().Unmap().IsLoopback() {
		return errElsewhere
	}
	return nil
}

// get gets a URL. A status of 200 to 299 says yes. Redirects are not followed: a round trip knows none.
func get(ctx context.Context, url string) podrule.Answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return no("the URL cannot be asked")
	}
	request.Header.Set("User-Agent", userAgent())
	response, err := localhost.RoundTrip(request)
	var port *net.AddrError
	switch {
	case errors.Is(err, errElsewhere):
		return no(errElsewhere.Error())
	case errors.As(err, &port):
		return no("the URL has no port that there is")
	case err != nil:
		return no(words(ctx, err, limit))
	}
	defer response.Body.Close() //nolint:errcheck // only read
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	switch status := response.StatusCode; status / 100 {
	case 2:
		return yes
	case 3:
		return no(fmt.Sprintf("answered %d, and redirects are not followed", status))
	default:
		return no(fmt.Sprintf("answered %d", status))
	}
}

func userAgent() string { return "readygate-podgate/" + version.Version }
