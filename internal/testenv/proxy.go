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

// Proxy stands before an API server, passes on what it is asked as one user, and can be slow
// or refuse. It remembers every request in the order of arrival.
type Proxy struct {
	server *httptest.Server

	mu       sync.Mutex
	fault    Fault
	arrivals []Arrival
	// course has the number of an arrival when it begins, and its complement when it ends.
	course []int
}

// Fault is what a proxy does to requests; the zero value does nothing.
type Fault struct {
	// Delay is how long a request rests before it is passed on or answered.
	Delay time.Duration
	// Hold returns when a request may be passed on or answered; nil: at once.
	Hold func(context.Context)
	// Code is the answer to a request, which is not passed on then; zero: it is.
	Code int
	// RetryAfter are the seconds after which the answer asks to come again; zero: it does not.
	RetryAfter int
	// Of says which requests are concerned; nil: all but those of leases.
	Of func(Arrival) bool
}

// Arrival is one request as it arrives.
type Arrival struct {
	Verb, Resource, Subresource, Name, Path string
	// Continues says that the request asks for a further page of a list.
	Continues bool
	At        time.Time
}

// What is "patch nodes", or "patch nodereadinessrules/status".
func (a Arrival) What() string {
	if a.Subresource == "" {
		return a.Verb + " " + a.Resource
	}
	return a.Verb + " " + a.Resource + "/" + a.Subresource
}

// IsWork says whether the request is neither a watch, which lasts, nor about a lease.
func (a Arrival) IsWork() bool { return a.Verb != "watch" && a.Resource != "leases" }

// ManagerProxy is a proxy for the manager. It is closed when the test ends.
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

// StartProxy starts a proxy on loopback that is, for the API server, who the configuration says.
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

// Config is for a client that speaks through the proxy.
func (p *Proxy) Config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// Set does this to requests that arrive from now on.
func (p *Proxy) Set(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// Close ends the proxy and all that goes through it.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Arrivals are all requests so far.
func (p *Proxy) Arrivals() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.arrivals)
}

// Counts are the numbers of requests so far, by verb and resource.
func (p *Proxy) Counts() map[string]int {
	counts := map[string]int{}
	for _, arrival := range p.Arrivals() {
		counts[arrival.What()]++
	}
	return counts
}

// MostUnderWay is how many requests of a kind were under way at one time, at most. A request is
// under way until its answer begins: the client cannot know of it before.
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

// begin notes an arrival and says what to do to it.
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
