package metricsauth

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
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
	// remembered is for how long an answer counts, and memory how many are kept.
	remembered = time.Minute
	memory     = 256

	// reviews is how many questions the API server is asked at a time: whoever knocks with many
	// tokens must not keep it, or the manager, busy.
	reviews = 4

	// patience is how long a client waits for the answer.
	patience = 10 * time.Second
)

// handler authenticates and authorizes clients with the API server, and caches the results.
type handler struct {
	tokens   authenticationclient.TokenReviewInterface
	accesses authorizationclient.SubjectAccessReviewInterface
	answers  *cache.LRUExpireCache
	asking   chan struct{}
	log      logr.Logger
	next     http.Handler
}

// question is what an answer depends on. Of the token only a digest is kept.
type question struct {
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
			answers:  cache.NewLRUExpireCache(memory),
			asking:   make(chan struct{}, reviews),
			log:      log,
			next:     next,
		}, nil
	}, nil
}

// ServeHTTP answers 401 to a client that the API server does not know, and 403 to one that may
// not. Whom it cannot ask about, it does not let in.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := bearer(r)
	if token == "" {
		refuse(w, http.StatusUnauthorized, "a bearer token is needed")
		return
	}
	code, err := h.answer(r.Context(), token, question{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path})
	switch {
	case err != nil:
		h.log.Error(err, "A client is not let in, because the API server does not say who it is")
		refuse(w, http.StatusServiceUnavailable, "the API server does not answer")
	case code == http.StatusUnauthorized:
		refuse(w, code, "the API server does not know this token")
	case code == http.StatusForbidden:
		refuse(w, code, "the API server does not let you "+strings.ToLower(r.Method)+" "+r.URL.Path+": you need a ClusterRole with this nonResourceURL")
	default:
		h.next.ServeHTTP(w, r)
	}
}

// bearer is the token of the request, if it has one.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func refuse(w http.ResponseWriter, code int, why string) {
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, why, code)
}

// answer is the HTTP status that the client is due. An error is not remembered.
func (h *handler) answer(ctx context.Context, token string, q question) (int, error) {
	if code, known := h.answers.Get(q); known {
		return code.(int), nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if code, known := h.answers.Get(q); known { // somebody has asked meanwhile
		return code.(int), nil
	}
	code, err := h.ask(ctx, token, &q)
	if err == nil {
		h.answers.Add(q, code, remembered)
	}
	return code, err
}

func (h *handler) ask(ctx context.Context, token string, q *question) (int, error) {
	review, err := h.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	access, err := h.accesses.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: specOf(&review.Status.User, q)}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !access.Status.Allowed || access.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func specOf(user *authenticationv1.UserInfo, q *question) authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	return authorizationv1.SubjectAccessReviewSpec{
		User:                  user.Username,
		UID:                   user.UID,
		Groups:                user.Groups,
		Extra:                 extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: q.path, Verb: q.verb},
	}
}
