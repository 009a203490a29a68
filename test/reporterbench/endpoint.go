package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// endpoints are the components that reporters look at: each answers 503 until it is ready.
type endpoints struct {
	server *http.Server
	port   int

	mu    sync.Mutex
	ready map[string]bool // by name
}

func serveEndpoints() (*endpoints, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoints{port: listener.Addr().(*net.TCPAddr).Port, ready: map[string]bool{}}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(listener) }() // until close
	return e, nil
}

func (e *endpoints) close() { _ = e.server.Close() }

// url is that of an endpoint. The guide's says localhost too, and a name costs more than an
// address.
func (e *endpoints) url(name string) string {
	return fmt.Sprintf("http://localhost:%d/%s", e.port, name)
}

// heal makes an endpoint answer 200, and returns since when.
func (e *endpoints) heal(name string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ready[name] = true
	return time.Now()
}

// ServeHTTP answers for the endpoint of the path.
func (e *endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	ready := e.ready[strings.TrimPrefix(r.URL.Path, "/")]
	e.mu.Unlock()
	if !ready {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}
