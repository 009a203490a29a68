package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// cacheTTL is how long a result is cached, and cacheSize the maximum number of results.
	cacheTTL  = time.Minute
	cacheSize = 256

	// maxReviews is the maximum number of concurrent reviews: a client that sends many tokens must not keep the
	// API server, or the manager, busy.
	maxReviews = 4

	// reviewTimeout bounds the reviews of one request, and the wait for them.
	reviewTimeout = 10 * time.Second
)

// handler authenticates and authorizes clients with the API server, and caches the results.
type handler struct {
	tokens   authenticationclient.TokenReviewInterface
	accesses authorizationclient.SubjectAccessReviewInterface
	cache    *cache.LRUExpireCache
	reviews  *semaphore.Weighted
	log      logr.Logger
	next     http.Handler
}

// cacheKey is what a result depends on. It has a digest of the token, so that tokens are not kept in memory.
type cacheKey struct {
	token      [sha256.Size]byte
	verb, path string
}

// Filter is a metricsserver.Options.FilterProvider.
func Filter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return &handler{
			tokens:   authentication.TokenReviews(),
			accesses: authorization.SubjectAccessReviews(),
			cache:    cache.NewLRUExpireCache(cacheSize),
			reviews:  semaphore.NewWeighted(maxReviews),
			log:      log,
			next:     next,
		}, nil
	}, nil
}

// ServeHTTP responds with 401 to an unauthenticated client, with 403 to one that is not authorized, and with 503 if
// the reviews fail.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := bearer(r)
	if token == "" {
		reject(w, http.StatusUnauthorized, "a bearer token is required")
		return
	}
	code, err := h.authorize(r.Context(), token, cacheKey{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path})
	switch {
	case err != nil:
		h.log.Error(err, "Rejected metrics request")
		reject(w, http.StatusServiceUnavailable, "the review by the API server failed")
	case code == http.StatusUnauthorized:
		reject(w, code, "the bearer token is not valid")
	case code == http.StatusForbidden:
		reject(w, code, "not authorized to "+strings.ToLower(r.Method)+" "+r.URL.Path+": bind a ClusterRole with this nonResourceURL")
	default:
		h.next.ServeHTTP(w, r)
	}
}

// bearer is the bearer token of the request; empty if it has none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func reject(w http.ResponseWriter, code int, reason string) {
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, reason, code)
}

// authorize returns the HTTP status for the client. Errors are not cached.
func (h *handler) authorize(ctx context.Context, token string, key cacheKey) (int, error) {
	if code, cached := h.cache.Get(key); cached {
		return code.(int), nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if err := h.reviews.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer h.reviews.Release(1)
	if code, cached := h.cache.Get(key); cached { // by another request in the meantime
		return code.(int), nil
	}
	code, err := h.review(ctx, token, &key)
	if err == nil {
		h.cache.Add(key, code, cacheTTL)
	}
	return code, err
}

func (h *handler) review(ctx context.Context, token string, key *cacheKey) (int, error) {
	review, err := h.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("creating TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	access, err := h.accesses.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: specOf(&review.Status.User, key)}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("creating SubjectAccessReview: %w", err)
	}
	if !access.Status.Allowed || access.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func specOf(user *authenticationv1.UserInfo, key *cacheKey) authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, value := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(value)
	}
	return authorizationv1.SubjectAccessReviewSpec{
		User:                  user.Username,
		UID:                   user.UID,
		Groups:                user.Groups,
		Extra:                 extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: key.path, Verb: key.verb},
	}
}
