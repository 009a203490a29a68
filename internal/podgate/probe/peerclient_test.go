package probe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/readygate/readygate/internal/podgate/probe"
)

// agent is the agent of a peer that finds what it is told, and counts how often it is asked.
type agent struct {
	url   string
	times atomic.Int32
}

func newAgent(t testing.TB, finds error) *agent {
	t.Helper()
	var tries atomic.Int32
	return agentWith(t, &probe.PeerHandler{Authorize: knows("good"), Dial: dialling(&tries, finds), Own: ownAddresses})
}

func agentWith(t testing.TB, handler http.Handler) *agent {
	t.Helper()
	a := &agent{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.times.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// always answers with a status and a text.
func always(status int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	})
}

// client asks agents at these addresses.
func client(addresses ...string) *probe.PeerClient {
	return &probe.PeerClient{
		Addresses: func(context.Context) ([]string, error) { return addresses, nil },
		Token:     func() (string, error) { return "good", nil },
	}
}

func timesOf(agents ...*agent) []int32 {
	times := make([]int32, len(agents))
	for i, a := range agents {
		times[i] = a.times.Load()
	}
	return times
}

func TestOnePeerThatReachesAPodIsEnough(t *testing.T) {
	t.Parallel()
	reaches, doesNot, stranger := newAgent(t, nil), newAgent(t, syscall.EHOSTUNREACH), agentWith(t, always(http.StatusNotFound, ""))
	nobody := "http://" + refused(t)
	const unreached = "another node does not reach it"
	for name, test := range map[string]struct {
		addresses []string
		why       string // empty: yes
	}{
		"one that does":                {[]string{reaches.url}, ""},
		"one with a slash":             {[]string{reaches.url + "/"}, ""},
		"one that does not":            {[]string{doesNot.url}, unreached},
		"one of two":                   {[]string{doesNot.url, reaches.url}, ""},
		"the other of two":             {[]string{reaches.url, doesNot.url}, ""},
		"one, the other is gone":       {[]string{nobody, reaches.url}, ""},
		"the other, one is gone":       {[]string{reaches.url, nobody}, ""},
		"none, one is gone":            {[]string{nobody, doesNot.url}, unreached},
		"none, the other is gone":      {[]string{doesNot.url, nobody}, unreached},
		"none, one is a stranger":      {[]string{stranger.url, doesNot.url}, unreached},
		"a stranger":                   {[]string{stranger.url}, "a peer answered 404"},
		"a stranger, one is gone":      {[]string{stranger.url, nobody}, "a peer answered 404"},
		"nobody is there":              {[]string{nobody, nobody}, "no peer answered"},
		"an address that is none":      {[]string{"10.1.0.2:9479"}, "no peer answered"},
		"there is no other node":       {nil, "no peer: no other node has an agent"},
		"an answer that is none":       {[]string{agentWith(t, always(http.StatusOK, "yes")).url}, "no peer answered"},
		"an answer that is too long":   {[]string{agentWith(t, always(http.StatusOK, `{"x":"`+strings.Repeat("x", 2<<10)+`","reached":true}`)).url}, "no peer answered"},
		"a status that is not 200":     {[]string{agentWith(t, always(http.StatusAccepted, `{"reached":true}`)).url}, "a peer answered 202"},
		"one that has too much to do":  {[]string{agentWith(t, always(http.StatusServiceUnavailable, "")).url}, "a peer answered 503"},
		"one that knows another token": {[]string{agentWith(t, &probe.PeerHandler{Authorize: knows("other")}).url}, "a peer answered 401"},
	} {
		want := no(test.why)
		if test.why == "" {
			want = yes
		}
		asking := client(test.addresses...)
		for range 2 { // each of them is the first once
			if answer := asking.Reach(t.Context(), "10.244.1.7:9"); answer != want {
				t.Errorf("%s: %+v, want %+v", name, answer, want)
			}
		}
	}
}

func TestPeersAreAskedByTurns(t *testing.T) {
	t.Parallel()
	agents := []*agent{newAgent(t, nil), newAgent(t, nil), newAgent(t, nil)}
	asking := client(agents[0].url, agents[1].url, agents[2].url)
	for range 6 {
		expect(t, asking.Reach(t.Context(), "10.244.1.7:9"), yes)
	}
	if times := timesOf(agents...); !slices.Equal(times, []int32{2, 2, 2}) {
		t.Errorf("peers were asked %v times", times)
	}
}

// A pod that no node reaches does not make all agents of a cluster try.
func TestNoMoreThanTwoPeersAreAsked(t *testing.T) {
	t.Parallel()
	agents := []*agent{newAgent(t, syscall.EHOSTUNREACH), newAgent(t, syscall.EHOSTUNREACH), newAgent(t, syscall.EHOSTUNREACH)}
	asking := client(agents[0].url, agents[1].url, agents[2].url)
	expect(t, asking.Reach(t.Context(), "10.244.1.7:9"), no("another node does not reach it"))
	if times := timesOf(agents...); times[0]+times[1]+times[2] != 2 || slices.Max(times) != 1 {
		t.Errorf("peers were asked %v times", times)
	}
	for range 2 {
		expect(t, asking.Reach(t.Context(), "10.244.1.7:9"), no("another node does not reach it"))
	}
	if times := timesOf(agents...); !slices.Equal(times, []int32{2, 2, 2}) {
		t.Errorf("peers were asked %v times", times)
	}
}

func TestWithoutATokenNobodyIsAsked(t *testing.T) {
	t.Parallel()
	peer := newAgent(t, nil)
	asking := client(peer.url)
	asking.Token = func() (string, error) { return "", errors.New("no such file") }
	expect(t, asking.Reach(t.Context(), "10.244.1.7:9"), no("no peer was asked: the agent's own token cannot be read"))
	if peer.times.Load() != 0 {
		t.Error("the peer was asked")
	}
}

// The token is for peers, not for whom they send it to.
func TestAPeerCannotSendTheTokenElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := newAgent(t, nil)
	peer := agentWith(t, http.RedirectHandler(elsewhere.url+probe.PeerPath, http.StatusTemporaryRedirect))
	own := client(peer.url)
	own.Client = &http.Client{}
	for _, asking := range []*probe.PeerClient{client(peer.url), own} {
		expect(t, asking.Reach(t.Context(), "10.244.1.7:9"), no("a peer answered 307"))
	}
	if elsewhere.times.Load() != 0 {
		t.Error("somebody else was asked")
	}
}

// roundTrip is a network between nodes.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A peer whose node is switched off leaves time to ask another.
func TestASilentPeerLeavesTimeForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asking := client("http://10.1.0.2:9479", "http://10.1.0.3:9479")
		times := map[string]int{}
		asking.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			times[r.URL.Hostname()]++
			if len(times) == 1 { // the first that is asked
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"reached":true}`)), Request: r}, nil
		})}
		var tries atomic.Int32
		asker := &probe.Asker{Dial: dialling(&tries, nil), Peers: asking}
		expect(t, asker.Ask(t.Context(), fromPeer("10.244.1.7:9")), yes)
		if times["10.1.0.2"] != 1 || times["10.1.0.3"] != 1 {
			t.Errorf("peers were asked %v", times)
		}
	})
}

// All are silent: the question ends by its own limit.
func TestSilentPeersDoNotKeepAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asking := client("http://10.1.0.2:9479", "http://10.1.0.3:9479")
		asking.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		expect(t, asking.Reach(t.Context(), "10.244.1.7:9"), no("no peer answered"))
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		expect(t, asking.Reach(ctx, "10.244.1.7:9"), no("the question was given up"))
	})
}
