package metricsauth_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/manager/metricsauth"
)

// server is the metrics endpoint behind the filter, and a fake API server that reviews its requests.
type server struct {
	metrics http.Handler

	mu                sync.Mutex
	unavailable       bool
	reviews           []string
	active, maxActive int
	hold              chan struct{} // closed: the API server responds at once
}

func newServer(t *testing.T) *server {
	s := &server{hold: make(chan struct{})}
	close(s.hold)
	api := httptest.NewServer(http.HandlerFunc(s.api))
	t.Cleanup(api.Close)
	filter, err := metricsauth.Filter(&rest.Config{Host: api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	s.metrics, err = filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "nodes 3") }))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// api reviews the tokens of prometheus, which may get /metrics, and of guest, which may not.
func (s *server) api(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	unavailable, hold := s.unavailable, s.hold
	s.reviews = append(s.reviews, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	s.active++
	s.maxActive = max(s.maxActive, s.active)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
	}()
	<-hold
	if unavailable {
		http.Error(w, "unavailable", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		respond[authenticationv1.TokenReview](w, r, func(review *authenticationv1.TokenReview) {
			user, known := strings.CutSuffix(review.Spec.Token, "-token")
			review.Status.Authenticated = known
			review.Status.User = authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {user}}}
		})
		return
	}
	respond[authorizationv1.SubjectAccessReview](w, r, func(review *authorizationv1.SubjectAccessReview) {
		path := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.Groups[0] == "system:authenticated" && review.Spec.Extra["pod"][0] == "prometheus" &&
			path.Path == "/metrics" && path.Verb == "get"
	})
}

func respond[T any](w http.ResponseWriter, r *http.Request, fill func(*T)) {
	var review T
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fill(&review)
	_ = json.NewEncoder(w).Encode(review)
}

// get sends a request with this Authorization header.
func (s *server) get(authorization, path string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response := httptest.NewRecorder()
	s.metrics.ServeHTTP(response, request)
	return response
}

func (s *server) reviewed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reviews
}

func TestOnlyAuthorizedClientsGetMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		authorization, path string
		code                int
		body                string
	}{
		"a reader":                    {"Bearer prometheus-token", "/metrics", http.StatusOK, "nodes 3"},
		"a reader, in another style":  {"bearer  prometheus-token ", "/metrics", http.StatusOK, "nodes 3"},
		"a reader, of something else": {"Bearer prometheus-token", "/debug", http.StatusForbidden, "get /debug"},
		"an account without access":   {"Bearer guest-token", "/metrics", http.StatusForbidden, "ClusterRole"},
		"an unknown token":            {"Bearer guess", "/metrics", http.StatusUnauthorized, "not valid"},
		"no token":                    {"", "/metrics", http.StatusUnauthorized, "bearer token"},
		"an empty token":              {"Bearer ", "/metrics", http.StatusUnauthorized, "bearer token"},
		"a password":                  {"Basic cHJvbWV0aGV1czp4", "/metrics", http.StatusUnauthorized, "bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newServer(t).get(c.authorization, c.path)
			if got.Code != c.code || !strings.Contains(got.Body.String(), c.body) {
				t.Errorf("got %d %q, want %d and %q", got.Code, got.Body, c.code, c.body)
			}
			if challenge := got.Header().Get("WWW-Authenticate"); (challenge != "") != (c.code == http.StatusUnauthorized) {
				t.Errorf("status %d has the challenge %q", got.Code, challenge)
			}
		})
	}
}

func TestReviewsAreCachedPerClientAndPath(t *testing.T) {
	s := newServer(t)
	for range 10 {
		for authorization, code := range map[string]int{"Bearer prometheus-token": http.StatusOK, "Bearer guess": http.StatusUnauthorized} {
			if got := s.get(authorization, "/metrics"); got.Code != code {
				t.Fatalf("%s: got %d, want %d", authorization, got.Code, code)
			}
		}
	}
	if reviews := s.reviewed(); len(reviews) != 3 {
		t.Errorf("the reviews are %v, want one TokenReview per token and one SubjectAccessReview", reviews)
	}
	if got := s.get("Bearer prometheus-token", "/debug"); got.Code != http.StatusForbidden {
		t.Errorf("the result for one path is used for another: got %d", got.Code)
	}
}

func TestClientsAreRejectedWhileTheAPIServerIsUnavailable(t *testing.T) {
	s := newServer(t)
	s.unavailable = true
	if got := s.get("Bearer prometheus-token", "/metrics"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("while the API server is unavailable: got %d, want 503", got.Code)
	}
	s.mu.Lock()
	s.unavailable = false
	s.mu.Unlock()
	if got := s.get("Bearer prometheus-token", "/metrics"); got.Code != http.StatusOK {
		t.Errorf("when it is available again: got %d, want 200", got.Code)
	}
}

func TestConcurrentReviewsAreBounded(t *testing.T) {
	s := newServer(t)
	s.hold = make(chan struct{})
	var requests sync.WaitGroup
	for i := range 50 {
		requests.Go(func() { s.get(fmt.Sprintf("Bearer guess-%d", i), "/metrics") })
	}
	for len(s.reviewed()) < 4 { // the maximum number of concurrent reviews
		time.Sleep(time.Millisecond)
	}
	close(s.hold)
	requests.Wait()
	if s.maxActive > 4 {
		t.Errorf("%d concurrent reviews, want at most 4", s.maxActive)
	}
	if reviews := len(s.reviewed()); reviews != 50 {
		t.Errorf("%d reviews of 50 tokens", reviews)
	}
}
