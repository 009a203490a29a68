package testenv

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Proxy forwards requests to an API server as one user, can delay or reject them, and records each request in
// the order of arrival.
type Proxy struct {
	server *httptest.Server

	mu       sync.Mutex
	fault    Fault
	arrivals []Arrival
	// course has the index of an arrival when it begins, and the bitwise complement of the index when it ends.
	course []int
}

// Fault describes how a proxy delays or rejects requests; the zero value forwards them at once.
type Fault struct {
	// Delay is the time before a request is forwarded or answered.
	Delay time.Duration
	// Hold blocks until a request may be forwarded or answered; nil: does not block.
	Hold func(context.Context)
	// Code is the status code of the proxy's own response; zero: the request is forwarded.
	Code int
	// RetryAfter is the value of the Retry-After header in seconds; zero: no header.
	RetryAfter int
	// Of selects the requests; nil: all but those for leases.
	Of func(Arrival) bool
}

// Arrival is one received request.
type Arrival struct {
	Verb, Resource, Subresource, Name, Path string
	// Continues is true if the request is for a further page of a list.
	Continues bool
	At        time.Time
}

// What returns "patch nodes", or "patch nodereadinessrules/status".
func (a Arrival) What() string {
	if a.Subresource == "" {
		return a.Verb + " " + a.Resource
	}
	return a.Verb + " " + a.Resource + "/" + a.Subresource
}

// IsWork reports whether the request is neither a watch nor for a lease.
func (a Arrival) IsWork() bool { return a.Verb != "watch" && a.Resource != "leases" }

// ManagerProxy starts a proxy for the manager. It is closed when the test ends.
func (c *Cluster) ManagerProxy(t testing.TB) *Proxy {
	t.Helper()
	config, err := c.ControlPlane.Config(ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := StartProxy(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// StartProxy starts a proxy on loopback that sends the credentials of the configuration.
func StartProxy(upstream *rest.Config) (*Proxy, error) {
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(upstream)
	if err != nil {
		return nil, err
	}
	p := &Proxy{}
	silent := log.New(io.Discard, "", 0)
	pass := httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches stream
		ErrorLog:      silent,
	}
	p.server = httptest.NewUnstartedServer(p.handler(pass))
	p.server.EnableHTTP2, p.server.Config.ErrorLog = true, silent
	p.server.StartTLS()
	return p, nil
}

// Config returns the configuration of a client that uses the proxy.
func (p *Proxy) Config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// Set applies the fault to requests that arrive from now on.
func (p *Proxy) Set(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// Close stops the proxy and closes its connections.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Arrivals returns all requests so far.
func (p *Proxy) Arrivals() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.arrivals)
}

// Counts returns the number of requests so far, by verb and resource.
func (p *Proxy) Counts() map[string]int {
	counts := map[string]int{}
	for _, arrival := range p.Arrivals() {
		counts[arrival.What()]++
	}
	return counts
}

// MostUnderWay returns the maximum number of concurrent requests of a kind. A request ends when its response
// begins: the client cannot observe it earlier.
func (p *Proxy) MostUnderWay(of func(Arrival) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, most := 0, 0
	for _, i := range p.course {
		switch {
		case i >= 0 && of(p.arrivals[i]):
			now++
			most = max(most, now)
		case i < 0 && of(p.arrivals[^i]):
			now--
		}
	}
	return most
}

func (p *Proxy) handler(pass httputil.ReverseProxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, fault := p.begin(r)
		end := sync.OnceFunc(func() { p.end(i) })
		defer end()
		if fault.Delay > 0 {
			select {
			case <-time.After(fault.Delay):
			case <-r.Context().Done():
				return
			}
		}
		if fault.Hold != nil {
			fault.Hold(r.Context())
		}
		if fault.Code == 0 {
			pass := pass
			pass.ModifyResponse = func(*http.Response) error {
				end() // the answer begins
				return nil
			}
			pass.ServeHTTP(w, r)
			return
		}
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		end()
		http.Error(w, "the proxy refuses", fault.Code)
	})
}

var infos = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// begin records an arrival and returns the fault to apply.
func (p *Proxy) begin(r *http.Request) (int, Fault) {
	arrival := Arrival{Verb: r.Method, Path: r.URL.Path, Continues: r.URL.Query().Has("continue"), At: time.Now()}
	if info, err := infos.NewRequestInfo(r); err == nil {
		arrival.Verb, arrival.Resource, arrival.Subresource, arrival.Name = info.Verb, info.Resource, info.Subresource, info.Name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i, fault := len(p.arrivals), p.fault
	p.arrivals, p.course = append(p.arrivals, arrival), append(p.course, i)
	if fault.Of == nil && arrival.Resource == "leases" || fault.Of != nil && !fault.Of(arrival) {
		return i, Fault{}
	}
	return i, fault
}

func (p *Proxy) end(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.course = append(p.course, ^i)
}
