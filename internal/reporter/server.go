package reporter

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/readygate/readygate/internal/reporter/check"
)

// bindRetryInterval is the time between two attempts to bind a port in use. With hostNetwork, the previous reporter
// pod may still use it.
const bindRetryInterval = 30 * time.Second

// maxConnections limits the memory that clients can use.
const maxConnections = 64

// serve serves metrics, health and the peer endpoint until the context ends. It logs a port in use and
// retries; the checks run meanwhile.
func serve(ctx context.Context, address string, handler http.Handler) {
	for logged := false; ctx.Err() == nil; pause(ctx, bindRetryInterval, nil) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			if !logged {
				slog.ErrorContext(ctx, "Cannot serve metrics and health; checks continue", "error", err, "hint", "set METRICS_BIND_ADDRESS to a free port, e.g. :9446, or to 0")
			}
			logged = true
			continue
		}
		slog.InfoContext(ctx, "Serving metrics and health", "address", listener.Addr().String())
		server := &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 2 * time.Second,
			ReadTimeout:       5 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       10 * time.Second,
			MaxHeaderBytes:    4 << 10,
		}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		err = server.Serve(netutil.LimitListener(listener, maxConnections))
		stop()
		if ctx.Err() == nil {
			slog.ErrorContext(ctx, "Serving metrics and health failed; retrying", "error", err)
		}
	}
}

// handler serves /metrics, /healthz, /readyz and, for other reporters, check.PeerPath.
func (r *Reporter) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		r.metrics.write(w)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the client has disconnected
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if unready := r.board.unreadyPeers(); unready != nil {
			http.Error(w, unready.conditionType+" is not True: this reporter must not be in the Service of ready peers", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET "+check.PeerPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(check.PeerNodeHeader, r.node)
	})
	return mux
}
