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

// door is metrics behind the filter, and the API server that it asks.
type door struct {
	metrics http.Handler

	mu             sync.Mutex
	away           bool
	asked          []string
	busy, mostBusy int
	hold           chan struct{} // closed: the API server answers at once
}

func newDoor(t *testing.T) *door {
	d := &door{hold: make(chan struct{})}
	close(d.hold)
	api := httptest.NewServer(http.HandlerFunc(d.api))
	t.Cleanup(api.Close)
	filter, err := metricsauth.Filter(&rest.Config{Host: api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	d.metrics, err = filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "nodes 3") }))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// api knows the tokens of prometheus, who may get /metrics, and of somebody, who may not.
func (d *door) api(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	away, hold := d.away, d.hold
	d.asked = append(d.asked, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	d.busy++
	d.mostBusy = max(d.mostBusy, d.busy)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy--
	}()
	<-hold
	if away {
		http.Error(w, "away", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		answer[authenticationv1.TokenReview](w, r, func(review *authenticationv1.TokenReview) {
			user, known := strings.CutSuffix(review.Spec.Token, "-token")
			review.Status.Authenticated = known
			review.Status.User = authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {user}}}
		})
		return
	}
	answer[authorizationv1.SubjectAccessReview](w, r, func(review *authorizationv1.SubjectAccessReview) {
		path := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.Groups[0] == "system:authenticated" && review.Spec.Extra["pod"][0] == "prometheus" &&
			path.Path == "/metrics" && path.Verb == "get"
	})
}

func answer[T any](w http.ResponseWriter, r *http.Request, fill func(*T)) {
	var review T
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fill(&review)
	_ = json.NewEncoder(w).Encode(review)
}

// knock is a request with this Authorization header.
func (d *door) knock(authorization, path string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	d.metrics.ServeHTTP(answer, request)
	return answer
}

func (d *door) questions() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

func TestOnlyAuthorizedClientsGetMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		authorization, path string
		code                int
		says                string
	}{
		"a reader":                    {"Bearer prometheus-token", "/metrics", http.StatusOK, "nodes 3"},
		"a reader, in another style":  {"bearer  prometheus-token ", "/metrics", http.StatusOK, "nodes 3"},
		"a reader, of something else": {"Bearer prometheus-token", "/debug", http.StatusForbidden, "get /debug"},
		"somebody":                    {"Bearer somebody-token", "/metrics", http.StatusForbidden, "ClusterRole"},
		"a token that nobody knows":   {"Bearer guess", "/metrics", http.StatusUnauthorized, "does not know"},
		"no token":                    {"", "/metrics", http.StatusUnauthorized, "bearer token"},
		"an empty token":              {"Bearer ", "/metrics", http.StatusUnauthorized, "bearer token"},
		"a password":                  {"Basic cHJvbWV0aGV1czp4", "/metrics", http.StatusUnauthorized, "bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newDoor(t).knock(c.authorization, c.path)
			if got.Code != c.code || !strings.Contains(got.Body.String(), c.says) {
				t.Errorf("got %d %q, want %d and %q", got.Code, got.Body, c.code, c.says)
			}
			if challenge := got.Header().Get("WWW-Authenticate"); (challenge != "") != (c.code == http.StatusUnauthorized) {
				t.Errorf("the answer %d has the challenge %q", got.Code, challenge)
			}
		})
	}
}

func TestReviewsAreCachedPerClientAndPath(t *testing.T) {
	d := newDoor(t)
	for range 10 {
		for authorization, code := range map[string]int{"Bearer prometheus-token": http.StatusOK, "Bearer guess": http.StatusUnauthorized} {
			if got := d.knock(authorization, "/metrics"); got.Code != code {
				t.Fatalf("%s: got %d, want %d", authorization, got.Code, code)
			}
		}
	}
	if asked := d.questions(); len(asked) != 3 {
		t.Errorf("the API server was asked %v, must be asked once about each token and once about access", asked)
	}
	if got := d.knock("Bearer prometheus-token", "/debug"); got.Code != http.StatusForbidden {
		t.Errorf("an answer about one path counts for another: got %d", got.Code)
	}
}

func TestClientsAreRejectedWhileTheAPIServerIsUnavailable(t *testing.T) {
	d := newDoor(t)
	d.away = true
	if got := d.knock("Bearer prometheus-token", "/metrics"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("while the API server is away: got %d, want 503", got.Code)
	}
	d.mu.Lock()
	d.away = false
	d.mu.Unlock()
	if got := d.knock("Bearer prometheus-token", "/metrics"); got.Code != http.StatusOK {
		t.Errorf("when it is back: got %d, want 200", got.Code)
	}
}

func TestManyTokensDoNotFloodTheAPIServer(t *testing.T) {
	d := newDoor(t)
	d.hold = make(chan struct{})
	var knocks sync.WaitGroup
	for i := range 50 {
		knocks.Go(func() { d.knock(fmt.Sprintf("Bearer guess-%d", i), "/metrics") })
	}
	for len(d.questions()) < 4 { // as many as may be asked at a time
		time.Sleep(time.Millisecond)
	}
	close(d.hold)
	knocks.Wait()
	if d.mostBusy > 4 {
		t.Errorf("%d questions at a time, at most 4 may be", d.mostBusy)
	}
	if asked := len(d.questions()); asked != 50 {
		t.Errorf("%d questions about 50 tokens", asked)
	}
}
