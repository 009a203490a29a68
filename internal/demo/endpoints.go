package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/readygate/readygate/internal/scenario"
)

// endpoints serves the health endpoints of the components of all nodes, at
// http://127.0.0.1:PORT/NODE/COMPONENT. An endpoint is down until its health is set.
type endpoints struct {
	address string
	server  *http.Server

	mu     sync.Mutex
	health map[string]scenario.Health
}

// serveEndpoints starts the server of the endpoints.
func serveEndpoints(ctx context.Context) (*endpoints, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving the health endpoints of components: %w", err)
	}
	e := &endpoints{address: listener.Addr().String(), health: map[string]scenario.Health{}}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = e.server.Serve(listener) }() // ends with close
	return e, nil
}

func (e *endpoints) close() error { return e.server.Close() }

func (e *endpoints) url(node, component string) string {
	return "http://" + e.address + "/" + node + "/" + component
}

// setHealth changes the health that an endpoint reports.
func (e *endpoints) setHealth(node, component string, is scenario.Health) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.health["/"+node+"/"+component] = is
}

// ServeHTTP responds with the health of a component.
func (e *endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	is := e.health[r.URL.Path]
	e.mu.Unlock()
	switch is {
	case scenario.Up:
		w.WriteHeader(http.StatusOK)
	case scenario.Hangs:
		<-r.Context().Done() // until the client disconnects or the demo ends
	default:
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}
