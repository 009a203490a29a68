package podgate

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/podgate/probe"
)

// desk is an agent whose API server says what it is told to of any token, and counts how often it is
// asked, in virtual time.
type desk struct {
	*peers

	mu      sync.Mutex
	says    authenticationv1.TokenReviewStatus
	fails   error
	takes   time.Duration
	reviews int
}

func atDesk(t *testing.T, f func(*testing.T, *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		d.says.Authenticated, d.says.User.Username = true, admission.PodgateUser
		api, err := kubernetes.NewForConfigAndClient(&rest.Config{QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}}, &http.Client{Transport: d})
		if err != nil {
			t.Fatal(err)
		}
		d.peers = &peers{api: api, node: "n1"}
		f(t, d)
		synctest.Wait()
	})
}

// RoundTrip answers a review.
func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	d.reviews++
	says, fails, takes := d.says, d.fails, d.takes
	d.mu.Unlock()
	time.Sleep(takes)
	var review authenticationv1.TokenReview
	if err := errors.Join(fails, json.NewDecoder(r.Body).Decode(&review)); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(r.URL.Path, "/tokenreviews") || !slices.Equal(review.Spec.Audiences, []string{peerAudience}) {
		return nil, errors.New("this is no review of the token of a peer")
	}
	review.Status = says
	data, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, nil
}

// want checks whether a token is let in, and how many reviews there were in all.
func (d *desk) want(t *testing.T, token string, good bool, reviews int, what string) {
	t.Helper()
	err := d.authorize(t.Context(), token)
	d.mu.Lock()
	defer d.mu.Unlock()
	if (err == nil) != good || d.reviews != reviews {
		t.Errorf("%s: %v after %d reviews, want %v after %d", what, err, d.reviews, good, reviews)
	}
}

// wantAll asks at the same time with tokens, and counts how many are let in.
func (d *desk) wantAll(t *testing.T, tokens []string, want int, what string) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	in := 0
	for _, token := range tokens {
		all.Go(func() {
			if d.authorize(t.Context(), token) == nil {
				mu.Lock()
				defer mu.Unlock()
				in++
			}
		})
	}
	all.Wait()
	if in != want {
		t.Errorf("%s: %d of %d were let in, want %d", what, in, len(tokens), want)
	}
}

// saying is a token with these claims. Nobody has signed it.
func saying(claims map[string]any) string {
	data, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part(data) + "." + part([]byte("signature"))
}

// tokenUntil is a token as agents have them, good for so long; the name tells it from others.
func tokenUntil(name string, lasts time.Duration) string {
	return saying(map[string]any{"sub": admission.PodgateUser, "aud": []string{peerAudience}, "exp": time.Now().Add(lasts).Unix(), "jti": name})
}

func TestATokenIsReviewedOnceAMinute(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		token := tokenUntil("a", time.Hour)
		for range 59 {
			d.want(t, token, true, 1, "in the first minute")
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		d.want(t, token, true, 2, "in the next one")
		d.want(t, tokenUntil("b", time.Hour), true, 3, "another token")
	})
}

// A token is not believed for longer than it is good.
func TestATokenIsNotBelievedWhenItHasExpired(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		token := tokenUntil("a", 20*time.Second)
		d.want(t, token, true, 1, "at first")
		time.Sleep(15 * time.Second)
		d.want(t, token, true, 1, "before it expires")
		d.says = authenticationv1.TokenReviewStatus{Error: "it has expired"}
		time.Sleep(10 * time.Second)
		d.want(t, token, false, 2, "when it has expired")
	})
}

func TestARefusedTokenIsAskedAboutAgainAfterAWhile(t *testing.T) {
	for name, says := range map[string]authenticationv1.TokenReviewStatus{
		"not valid":       {},
		"of somebody":     {Authenticated: true, User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:default"}},
		"of another name": {Authenticated: true, User: authenticationv1.UserInfo{Username: admission.PodgateUser + "2"}},
	} {
		atDesk(t, func(t *testing.T, d *desk) {
			token, good := tokenUntil("a", time.Hour), d.says
			d.says = says
			for range 9 {
				d.want(t, token, false, 1, name)
				time.Sleep(time.Second)
			}
			d.says = good
			time.Sleep(2 * time.Second)
			d.want(t, token, true, 2, name+", and good later")
		})
	}
}

// Tokens that by their own words are not those of agents cost nothing.
func TestJunkDrivesNoReviews(t *testing.T) {
	account, forPeers := admission.PodgateUser, []string{peerAudience}
	part := base64.RawURLEncoding.EncodeToString
	for name, token := range map[string]string{
		"nothing":             "",
		"a word":              "junk",
		"two parts":           "a.b",
		"four parts":          saying(map[string]any{"sub": account, "aud": forPeers}) + ".x",
		"no base64":           "a.!.c",
		"no JSON":             "a." + part([]byte("junk")) + ".c",
		"no claims":           saying(map[string]any{}),
		"a list":              "a." + part([]byte("[]")) + ".c",
		"another account":     saying(map[string]any{"sub": "system:serviceaccount:shop:default", "aud": forPeers}),
		"no account":          saying(map[string]any{"aud": forPeers}),
		"another audience":    saying(map[string]any{"sub": account, "aud": []string{"https://kubernetes.default.svc"}}),
		"another one, alone":  saying(map[string]any{"sub": account, "aud": "https://kubernetes.default.svc"}),
		"no audience":         saying(map[string]any{"sub": account}),
		"an audience of none": saying(map[string]any{"sub": account, "aud": nil}),
		"a number":            saying(map[string]any{"sub": account, "aud": 7}),
		"too long":            saying(map[string]any{"sub": account, "aud": forPeers, "jti": strings.Repeat("x", maxToken)}),
	} {
		atDesk(t, func(t *testing.T, d *desk) {
			for range 100 {
				d.want(t, token, false, 0, name)
			}
			if err := d.authorize(t.Context(), token); errors.Is(err, probe.ErrNotNow) {
				t.Errorf("%s: may come again: %v", name, err)
			}
		})
	}
	atDesk(t, func(t *testing.T, d *desk) {
		d.want(t, saying(map[string]any{"sub": account, "aud": peerAudience, "exp": time.Now().Add(time.Hour).Unix()}), true, 1, "an audience that is no list")
		d.want(t, saying(map[string]any{"sub": account, "aud": []string{"other", peerAudience}, "exp": 1e300}), true, 2, "two audiences, and no end")
		d.want(t, saying(map[string]any{"sub": account, "aud": peerAudience}), true, 3, "no word of when it ends")
		d.want(t, saying(map[string]any{"sub": account, "aud": peerAudience}), true, 4, "again: it is not remembered")
	})
}

// Who asks many questions at once costs one review.
func TestManyQuestionsCostOneReview(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.takes = time.Second
		token := tokenUntil("a", time.Hour)
		hasty, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		all := make([]string, 64)
		for i := range all {
			all[i] = token
		}
		go d.wantAll(t, all, 64, "who waited")
		if err := d.authorize(hasty, token); !errors.Is(err, probe.ErrNotNow) { // perhaps it has begun the review
			t.Errorf("one that did not wait: %v", err)
		}
		time.Sleep(2 * time.Second)
		d.want(t, token, true, 1, "after it")
	})
}

// That the API server cannot be asked says nothing of a token.
func TestAReviewThatFailsIsNotRemembered(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		token := tokenUntil("a", time.Hour)
		d.fails = errors.New("connection refused")
		if err := d.authorize(t.Context(), token); !errors.Is(err, probe.ErrNotNow) || !errors.Is(err, d.fails) {
			t.Errorf("it is %v", err)
		}
		d.fails = nil
		d.want(t, token, true, 2, "when it can")
	})
}

// made are so many tokens that look like those of agents.
func made(number int) []string {
	all := make([]string, number)
	for i := range all {
		all[i] = tokenUntil(strconv.Itoa(i), time.Hour)
	}
	return all
}

// Who makes up tokens that look right keeps the API server a little busy, and no peer that is known out.
func TestTokensThatAreMadeUpAreBounded(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		peer := tokenUntil("peer", time.Hour)
		d.want(t, peer, true, 1, "a peer")
		d.says, d.takes = authenticationv1.TokenReviewStatus{}, time.Millisecond
		go d.wantAll(t, made(500), 0, "500 at once")
		synctest.Wait()
		if d.reviews != 1+maxReviews {
			t.Errorf("%d reviews at a time", d.reviews-1)
		}
		d.want(t, peer, true, 1+maxReviews, "a peer beside them")
		time.Sleep(time.Second)
		for range 20 {
			d.wantAll(t, made(200), 0, "200 in a second")
			time.Sleep(time.Second)
		}
		if most := 1 + maxReviews + reviewBurst + 21*reviewRate; d.reviews > most {
			t.Errorf("%d reviews in 21 seconds, want at most %d", d.reviews, most)
		}
		reviews := d.reviews
		d.want(t, peer, true, reviews, "a peer after them")
	})
}

// Made-up tokens do not fill the memory.
func TestSoManyTokensAreRemembered(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		d.want(t, "junk", false, 0, "at first")
		tokens := made(maxTokens + 1)
		for _, token := range tokens {
			d.seen.good.Add(token, true, time.Hour)
			d.seen.bad.Add(token, errors.New("no"), time.Hour)
		}
		if good, bad := len(d.seen.good.Keys()), len(d.seen.bad.Keys()); good != maxTokens || bad != maxTokens {
			t.Errorf("remembered are %d and %d", good, bad)
		}
	})
}
