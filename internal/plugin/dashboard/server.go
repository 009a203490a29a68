package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

// Options configure the dashboard.
type Options struct {
	Fleet *live.Fleet
	// Explanation returns the explanation of a node, with events and writers. Nil means Fleet.Explanation.
	Explanation func(ctx context.Context, node string) (view.Explanation, error)
	// PodExplanation returns the explanation of a pod. Nil means Fleet.PodExplanation, for waiting pods only.
	PodExplanation func(ctx context.Context, namespace, name string) (view.PodExplanation, error)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Title names the cluster, e.g. the kubeconfig's context. Empty means no title.
	Title string
}

const (
	// streamInterval is the minimum time between two messages of a stream.
	streamInterval = 200 * time.Millisecond
	// beat is the interval of keep-alive messages.
	beat = 15 * time.Second
	// readTimeout is the maximum time that a page may take to read a message.
	readTimeout = 20 * time.Second
	// maxStreams is the maximum number of open pages.
	maxStreams = 64
)

// Server serves the page.
type Server struct {
	options Options
	history history
	streams chan struct{}

	after       func(time.Duration) <-chan time.Time
	readTimeout time.Duration
}

// New returns a server that does not serve or record history yet.
func New(options Options) *Server {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Explanation == nil {
		options.Explanation = options.Fleet.Explanation
	}
	if options.PodExplanation == nil {
		options.PodExplanation = options.Fleet.PodExplanation
	}
	return &Server{options: options, streams: make(chan struct{}, maxStreams), after: time.After, readTimeout: readTimeout}
}

// Handler returns the handler of the page. It accepts requests from this machine only.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/stream", s.stream)
	mux.HandleFunc("GET /api/history", s.serveHistory)
	mux.HandleFunc("GET /api/times", s.serveTimes)
	mux.HandleFunc("GET /api/nodes/{name}/explanation", s.serveExplanation)
	mux.HandleFunc("GET /api/pods/{namespace}/{name}/explanation", s.servePodExplanation)
	mux.HandleFunc("GET /", serveFile)
	return guard(mux)
}

// Listen listens on a loopback port; 0 selects a free port. The page shows the cluster with the permissions of the user
// who serves it, so other machines must not reach it.
func Listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w; use another port, or 0 for a free port", port, err)
	}
	return listener, nil
}

// Serve serves the page and records history until the context ends. It then ends all streams.
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

func (s *Server) serveExplanation(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	explanation, err := s.options.Explanation(ctx, r.PathValue("name"))
	s.answerOr(w, explanation, err)
}

func (s *Server) servePodExplanation(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	explanation, err := s.options.PodExplanation(ctx, r.PathValue("namespace"), r.PathValue("name"))
	s.answerOr(w, explanation, err)
}

// answerOr writes the value, or the error.
func (s *Server) answerOr(w http.ResponseWriter, value any, err error) {
	switch {
	case apierrors.IsNotFound(err):
		s.answer(w, http.StatusNotFound, map[string]string{"error": err.Error()})
	case err != nil:
		s.answer(w, http.StatusBadGateway, map[string]string{"error": err.Error()})
	default:
		s.answer(w, http.StatusOK, value)
	}
}

func (s *Server) answer(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.readTimeout)) // not every writer supports deadlines
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data) // an error means that the client has disconnected
}
