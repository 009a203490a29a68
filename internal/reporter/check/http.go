package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/readygate/readygate/internal/version"
)

// HTTP sends a GET request. A response with one of the status codes is healthy.
type HTTP struct {
	// url is the URL of the request, e.g. http://localhost:9099/readiness or https://localhost:10250/healthz.
	URL string `json:"url"`
	// unixSocket is the path of a Unix socket that receives the request, e.g. /run/agent.sock. Absent:
	// the request goes to the host in url.
	UnixSocket string `json:"unixSocket,omitempty"`
	// status lists the codes that mean healthy, e.g. ["200-299", "401"]. Absent: 200-299. The check
	// follows a redirect to the same host unless its code is listed.
	Status []string `json:"status,omitempty"`
	// headers are added to the request, e.g. {Authorization: "Bearer x"}. Absent: none.
	Headers map[string]string `json:"headers,omitempty"`
	TLS     `json:",inline"`
}

// maxRedirects is the maximum number of redirects that a check follows.
const maxRedirects = 5

// redirectError ends a check that was redirected too often or to another host, which is not the component of this node.
type redirectError string

func (e redirectError) Error() string { return string(e) }

type httpCheck struct {
	spec   *HTTP
	url    string
	shown  string
	status []codes
	env    Env
}

type codes struct{ from, to int }

func (h *HTTP) check(env Env) (Check, error) {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, wrong("url", "is %q, must be a URL with a host, e.g. http://localhost:9099/readiness", h.URL)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, wrong("url", "is %q, must begin with http:// or https://, e.g. http://localhost:9099/readiness", h.URL)
	case h.UnixSocket != "" && !filepath.IsAbs(h.UnixSocket):
		return nil, wrong("unixSocket", "is %q, must be an absolute path, e.g. /run/agent.sock", h.UnixSocket)
	case u.Scheme == "http" && h.TLS != TLS{}:
		return nil, wrong("url", "is %q, which does not use TLS: remove caFile, serverName and insecureSkipVerify, or begin with https://", h.URL)
	}
	if u.Port() != "" {
		if err := portInRange(u.Port()); err != nil {
			return nil, wrong("url", "is %q: %v", h.URL, err)
		}
	}
	if err := headersFit(h.Headers); err != nil {
		return nil, err
	}
	status, err := parseStatus(h.Status)
	if err != nil {
		return nil, err
	}
	if err := h.validate(); err != nil {
		return nil, err
	}
	shown := u.Redacted()
	if h.UnixSocket != "" {
		shown += " at " + h.UnixSocket
	}
	return &httpCheck{spec: h, url: h.URL, shown: shown, status: status, env: env}, nil
}

func headersFit(headers map[string]string) error {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := http.CanonicalHeaderKey(name)
		before, twice := seen[canonical]
		switch seen[canonical] = name; {
		case !httpguts.ValidHeaderFieldName(name):
			return wrong("headers", "has the name %q, must consist of letters, digits and dashes, e.g. X-Health-Token", name)
		case twice:
			return wrong("headers", "has %s and %s, which are the same header: remove one of them", before, name)
		case !httpguts.ValidHeaderFieldValue(headers[name]), canonical == "Host" && !httpguts.ValidHostHeader(headers[name]):
			return wrong("headers", "has an invalid value for %s, must be one line of text", name)
		}
	}
	return nil
}

func parseStatus(texts []string) ([]codes, error) {
	if len(texts) == 0 {
		return []codes{{200, 299}}, nil
	}
	var all []codes
	for i, text := range texts {
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 100 || b > 599 || a > b {
			return nil, wrong(fmt.Sprintf("status[%d]", i), `is %q, must be a code or a range of codes from 100 to 599, e.g. "200-299" or "401"`, text)
		}
		all = append(all, codes{a, b})
	}
	return all, nil
}

// Run sends one request on a new connection: a connection that is already open proves less.
func (c *httpCheck) Run(ctx context.Context) Observation {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return failed(ReasonEndpointConnectionError, "the request cannot be created")
	}
	request.Header.Set("User-Agent", userAgent())
	for name, value := range c.spec.Headers {
		request.Header.Set(name, value)
		if http.CanonicalHeaderKey(name) == "Host" {
			request.Host = value
		}
	}
	dial, closeAll := newDialer(ctx, 1, c.spec.UnixSocket)
	defer closeAll()
	client, err := c.client(request.URL, dial)
	if err != nil {
		return failed(ReasonEndpointConnectionError, err.Error())
	}
	response, err := client.Do(request)
	var redirect redirectError
	switch {
	case errors.As(err, &redirect):
		return unhealthy(ReasonEndpointNotReady, fmt.Sprintf("%s %v", c.shown, redirect))
	case err != nil:
		return noAnswer(c.shown, err, c.env)
	}
	_ = response.Body.Close() // it is not read
	answer := fmt.Sprintf("%s returned %d", c.shown, response.StatusCode)
	if c.isGood(response.StatusCode) {
		return healthy(ReasonEndpointOK, answer)
	}
	return unhealthy(ReasonEndpointNotReady, answer)
}

func (c *httpCheck) isGood(status int) bool {
	return slices.ContainsFunc(c.status, func(good codes) bool { return good.from <= status && status <= good.to })
}

func userAgent() string { return "readygate-reporter/" + version.Version }

func (c *httpCheck) client(first *url.URL, dial dialFunc) (*http.Client, error) {
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
	if first.Scheme == "https" {
		config, err := c.spec.config()
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = config
	}
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		switch {
		case c.isGood(request.Response.StatusCode):
			return http.ErrUseLastResponse // spec.status lists the redirect
		case request.URL.Host != first.Host || request.URL.Scheme != first.Scheme:
			return redirectError("redirects to another host")
		case len(via) > maxRedirects:
			return redirectError("redirects too often")
		}
		return nil
	}}, nil
}
