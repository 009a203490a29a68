package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

// Fleet is what the page shows. A *live.Fleet is one.
type Fleet interface {
	Follow() (*live.Follower, live.Snapshot)
	Snapshot() live.Snapshot
	Story(node string, now time.Time) (view.Story, bool)
	PodStory(namespace, name string, now time.Time) (view.PodStory, bool)
}

// Options say what is shown.
type Options struct {
	Fleet Fleet
	// Story is the whole story of a node, with events and writers. Nil: as the fleet knows it.
	Story func(ctx context.Context, node string) (view.Story, error)
	// PodStory is the whole story of a pod. Nil: as the fleet knows it, while the pod waits.
	PodStory func(ctx context.Context, namespace, name string) (view.PodStory, error)
	// Now is the clock; nil: that of the machine.
	Now func() time.Time
	// Title says which cluster it is, as the name of a context; empty: nothing is said.
	Title string
}

const (
	// pace is the least time between two messages of a stream: more often helps no eye.
	pace = 200 * time.Millisecond
	// beat is how often a quiet stream says that it is alive.
	beat = 15 * time.Second
	// patience is how long a page may take to read what is sent to it.
	patience = 20 * time.Second
	// maxStreams bounds the pages that are open at a time.
	maxStreams = 64
)

// Server serves the page.
type Server struct {
	fleet    Fleet
	story    func(ctx context.Context, node string) (view.Story, error)
	podStory func(ctx context.Context, namespace, name string) (view.PodStory, error)
	now      func() time.Time
	title    string
	history  history
	streams  chan struct{}

	after    func(time.Duration) <-chan time.Time
	patience time.Duration
}

// New makes a server. Nothing is served yet, and no history kept.
func New(options Options) *Server {
	s := &Server{
		fleet: options.Fleet, story: options.Story, podStory: options.PodStory, now: options.Now, title: options.Title,
		streams: make(chan struct{}, maxStreams), after: time.After, patience: patience,
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.story == nil {
		s.story = s.known
	}
	if s.podStory == nil {
		s.podStory = s.knownPod
	}
	return s
}

// Handler serves the page, to requests from this machine only.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/stream", s.stream)
	mux.HandleFunc("GET /api/history", s.serveHistory)
	mux.HandleFunc("GET /api/times", s.serveTimes)
	mux.HandleFunc("GET /api/nodes/{name}/story", s.serveStory)
	mux.HandleFunc("GET /api/pods/{namespace}/{name}/story", s.servePodStory)
	mux.HandleFunc("GET /", serveFile)
	return guard(mux)
}

// Listen takes a port of loopback; 0 takes any that is free. The page shows a cluster with
// the rights of whoever serves it, so nobody else's machine may reach it.
func Listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot serve the dashboard on port %d: choose another port, or 0 for any that is free: %w", port, err)
	}
	return listener, nil
}

// Serve serves the page and keeps history until the context is over, then ends all streams.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go s.Run(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving the dashboard: %w", err)
	case <-ctx.Done():
	}
	soon, stop := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer stop()
	if err := server.Shutdown(soon); errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return nil
}
