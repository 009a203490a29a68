package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/readygate/readygate/internal/plugin/view"
)

// known is the story of a node as the fleet knows it.
func (s *Server) known(_ context.Context, node string) (view.Story, error) {
	story, there := s.fleet.Story(node, s.now())
	if !there {
		return view.Story{}, fmt.Errorf("there is no node %q: %w", node, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, node))
	}
	return story, nil
}

// knownPod is the story of a pod as the fleet knows it.
func (s *Server) knownPod(_ context.Context, namespace, name string) (view.PodStory, error) {
	story, there := s.fleet.PodStory(namespace, name, s.now())
	if !there {
		return view.PodStory{}, fmt.Errorf("no pod %s/%s waits: %w", namespace, name, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name))
	}
	return story, nil
}

// serveStory tells the story of one node.
func (s *Server) serveStory(w http.ResponseWriter, r *http.Request) {
	tell(s, w, r, func(ctx context.Context) (view.Story, error) { return s.story(ctx, r.PathValue("name")) })
}

// servePodStory tells the story of one pod.
func (s *Server) servePodStory(w http.ResponseWriter, r *http.Request) {
	tell(s, w, r, func(ctx context.Context) (view.PodStory, error) {
		return s.podStory(ctx, r.PathValue("namespace"), r.PathValue("name"))
	})
}

// tell tells a story, or why it cannot be told.
func tell[T any](s *Server, w http.ResponseWriter, r *http.Request, read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	story, err := read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		s.answer(w, http.StatusNotFound, failure{err.Error()})
	case err != nil:
		s.answer(w, http.StatusBadGateway, failure{err.Error()})
	default:
		s.answer(w, http.StatusOK, story)
	}
}

// failure is the answer when there is none.
type failure struct {
	Error string `json:"error"`
}

func (s *Server) answer(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.patience)) // a writer without deadlines has none to miss
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data) // whoever asked has gone
}
