package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/readygate/readygate/internal/podgate/probe"
)

// knows authorizes one token.
func knows(token string) func(context.Context, string) error {
	return func(_ context.Context, is string) error {
		if is != token {
			return errors.New("nobody knows this token")
		}
		return nil
	}
}

// ownAddresses are those of a node.
func ownAddresses() ([]net.Addr, error) {
	return []net.Addr{
		&net.IPNet{IP: net.ParseIP("10.1.0.2"), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("fd00:1::2"), Mask: net.CIDRMask(64, 128)},
	}, nil
}

// question is a request as a peer sends it.
func question(body string) *http.Request {
	request := httptest.NewRequest(http.MethodPost, probe.PeerPath, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer good")
	return request
}

// answered is the status and the body of an answer.
func answered(handler http.Handler, request *http.Request) (int, string) {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code, strings.TrimSpace(recorder.Body.String())
}

func TestAPeerIsToldWhetherThisNodeReachesAPod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		address string
		err     error
		want    string
	}{
		"accepted":         {address: "10.244.1.7:9", want: `{"reached":true}`},
		"reset":            {address: "10.244.1.7:9", err: syscall.ECONNREFUSED, want: `{"reached":true}`},
		"of IPv6":          {address: "[fd00:244::7]:9", want: `{"reached":true}`},
		"beside this node": {address: "10.1.0.3:9", want: `{"reached":true}`},
		"not reached":      {address: "10.244.1.7:9", err: syscall.EHOSTUNREACH, want: `{"reached":false,"why":"no route to the host"}`},
	} {
		var times atomic.Int32
		handler := &probe.PeerHandler{Authorize: knows("good"), Dial: dialling(&times, test.err), Own: ownAddresses}
		if status, body := answered(handler, question(`{"address":"`+test.address+`"}`)); status != http.StatusOK || body != test.want || times.Load() != 1 {
			t.Errorf("%s: %d %s after %d tries, want %s", name, status, body, times.Load(), test.want)
		}
	}
}

// No refused question costs a try, or tells anything about this node.
func TestWhatAPeerMayNotAskIsRefused(t *testing.T) {
	t.Parallel()
	const good = `{"address":"10.244.1.7:9"}`
	about := func(address string) *http.Request {
		body, err := json.Marshal(map[string]string{"address": address})
		if err != nil {
			t.Fatal(err)
		}
		return question(string(body))
	}
	with := func(change func(*http.Request)) *http.Request {
		request := question(good)
		change(request)
		return request
	}
	for name, test := range map[string]struct {
		request *http.Request
		status  int
		says    string
	}{
		"another path":       {with(func(r *http.Request) { r.URL.Path = "/metrics" }), http.StatusNotFound, "only /v1/reach is here"},
		"another method":     {with(func(r *http.Request) { r.Method = http.MethodGet }), http.StatusMethodNotAllowed, "only POST"},
		"no token":           {with(func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized, "the token is missing"},
		"an empty token":     {with(func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }), http.StatusUnauthorized, "the token is missing"},
		"a wrong token":      {with(func(r *http.Request) { r.Header.Set("Authorization", "Bearer bad") }), http.StatusUnauthorized, "the token is missing, or not that of an agent"},
		"another scheme":     {with(func(r *http.Request) { r.Header.Set("Authorization", "Basic good") }), http.StatusUnauthorized, "the token is missing"},
		"no question":        {question(""), http.StatusBadRequest, "the question cannot be read"},
		"no JSON":            {question("10.244.1.7:9"), http.StatusBadRequest, "the question cannot be read"},
		"a long question":    {question(`{"address":"` + strings.Repeat("1", 2<<10) + `"}`), http.StatusRequestEntityTooLarge, "must be at most 1024 bytes"},
		"no address":         {question(`{}`), http.StatusBadRequest, `address is "", which is no IP address with a port: must be that of a pod, e.g. 10.244.1.7:9`},
		"a name":             {about("localhost:9"), http.StatusBadRequest, "no IP address with a port"},
		"no port":            {about("10.244.1.7"), http.StatusBadRequest, "no IP address with a port"},
		"port 0":             {about("10.244.1.7:0"), http.StatusBadRequest, "no IP address with a port"},
		"a zone":             {about("[fe80::1%eth0]:9"), http.StatusBadRequest, "no IP address with a port"},
		"loopback":           {about("127.0.0.1:10250"), http.StatusBadRequest, "a loopback address"},
		"any loopback":       {about("127.9.9.9:10250"), http.StatusBadRequest, "a loopback address"},
		"loopback of IPv6":   {about("[::1]:10250"), http.StatusBadRequest, "a loopback address"},
		"loopback in IPv6":   {about("[::ffff:127.0.0.1]:10250"), http.StatusBadRequest, "a loopback address"},
		"link-local":         {about("169.254.169.254:80"), http.StatusBadRequest, "a link-local address"},
		"link-local of IPv6": {about("[fe80::1]:9"), http.StatusBadRequest, "a link-local address"},
		"multicast":          {about("224.0.0.1:9"), http.StatusBadRequest, "a multicast address"},
		"multicast of IPv6":  {about("[ff02::1]:9"), http.StatusBadRequest, "a multicast address"},
		"unspecified":        {about("0.0.0.0:10250"), http.StatusBadRequest, "an unspecified address"},
		"unspecified IPv6":   {about("[::]:10250"), http.StatusBadRequest, "an unspecified address"},
		"the node's own":     {about("10.1.0.2:10250"), http.StatusBadRequest, "an address of this node itself"},
		"its own of IPv6":    {about("[fd00:1::2]:10250"), http.StatusBadRequest, "an address of this node itself"},
		"its own in IPv6":    {about("[::ffff:10.1.0.2]:10250"), http.StatusBadRequest, "an address of this node itself"},
		"a long address":     {about(strings.Repeat("1", 500)), http.StatusBadRequest, `address is "` + strings.Repeat("1", 64) + `", which`},
	} {
		var times atomic.Int32
		handler := &probe.PeerHandler{Authorize: knows("good"), Dial: dialling(&times, nil), Own: ownAddresses}
		if status, body := answered(handler, test.request); status != test.status || !strings.Contains(body, test.says) || times.Load() != 0 {
			t.Errorf("%s: %d %s after %d tries, want %d %s", name, status, body, times.Load(), test.status, test.says)
		}
	}
}

func TestWithoutAuthorizeNobodyIsAnswered(t *testing.T) {
	t.Parallel()
	if status, _ := answered(&probe.PeerHandler{}, question(`{"address":"10.244.1.7:9"}`)); status != http.StatusUnauthorized {
		t.Errorf("the status is %d", status)
	}
}

// A node that does not know its own addresses cannot refuse them.
func TestANodeThatDoesNotKnowItselfTriesNothing(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	handler := &probe.PeerHandler{Authorize: knows("good"), Dial: dialling(&times, nil), Own: func() ([]net.Addr, error) { return nil, errors.New("no") }}
	if status, body := answered(handler, question(`{"address":"10.244.1.7:9"}`)); status != http.StatusInternalServerError || times.Load() != 0 {
		t.Errorf("%d %s after %d tries", status, body, times.Load())
	}
}

// The addresses of this machine are found without being told.
func TestTheAddressesOfTheNodeAreItsInterfaces(t *testing.T) {
	t.Parallel()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, one := range own {
		network, ok := one.(*net.IPNet)
		if !ok || !network.IP.IsGlobalUnicast() {
			continue
		}
		tried++
		var times atomic.Int32
		handler := &probe.PeerHandler{Authorize: knows("good"), Dial: dialling(&times, nil)}
		if status, body := answered(handler, question(`{"address":"`+net.JoinHostPort(network.IP.String(), "9")+`"}`)); status != http.StatusBadRequest || times.Load() != 0 {
			t.Errorf("%s: %d %s", one, status, body)
		}
	}
	if tried == 0 {
		t.Skip("this machine has no address but loopback")
	}
}

func TestOnlySoManyPeersAreAnsweredAtATime(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	handler := &probe.PeerHandler{
		Authorize: knows("good"),
		Own:       ownAddresses,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			began <- struct{}{}
			<-end
			return nil, syscall.ECONNREFUSED
		},
	}
	const good = `{"address":"10.244.1.7:9"}`
	var first sync.WaitGroup
	for range probe.MaxAsked {
		first.Go(func() {
			if status, body := answered(handler, question(good)); status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	for range probe.MaxAsked {
		<-began
	}
	for range 3 {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, question(good))
		if recorder.Code != http.StatusServiceUnavailable || recorder.Header().Get("Retry-After") == "" {
			t.Errorf("%d %v", recorder.Code, recorder.Header())
		}
	}
	close(end)
	first.Wait()
	go func() { <-began }()
	if status, body := answered(handler, question(good)); status != http.StatusOK {
		t.Errorf("after the others: %d %s", status, body)
	}
}

// Any number of strangers whose tokens are still being looked at do not take the place of a peer.
func TestStrangersDoNotKeepPeersOut(t *testing.T) {
	t.Parallel()
	const good = `{"address":"10.244.1.7:9"}`
	looked, end := make(chan struct{}), make(chan struct{})
	var times atomic.Int32
	handler := &probe.PeerHandler{Own: ownAddresses, Dial: dialling(&times, nil), Authorize: func(ctx context.Context, token string) error {
		if token != "good" {
			looked <- struct{}{}
			<-end
		}
		return knows("good")(ctx, token)
	}}
	var strangers sync.WaitGroup
	for range 4 * probe.MaxAsked {
		strangers.Go(func() {
			request := question(good)
			request.Header.Set("Authorization", "Bearer junk")
			if status, body := answered(handler, request); status != http.StatusUnauthorized {
				t.Errorf("a stranger: %d %s", status, body)
			}
		})
		<-looked
	}
	if status, body := answered(handler, question(good)); status != http.StatusOK {
		t.Errorf("a peer beside them: %d %s", status, body)
	}
	close(end)
	strangers.Wait()
}

// A peer whose token cannot be looked at now is not told that it is wrong.
func TestATokenThatCannotBeLookedAtNowMayComeAgain(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	handler := &probe.PeerHandler{Authorize: func(context.Context, string) error {
		return fmt.Errorf("%w: the API server is gone", probe.ErrNotNow)
	}}
	handler.ServeHTTP(recorder, question(`{"address":"10.244.1.7:9"}`))
	if body := recorder.Body.String(); recorder.Code != http.StatusServiceUnavailable || recorder.Header().Get("Retry-After") == "" || strings.Contains(body, "API server") {
		t.Errorf("%d %v %s", recorder.Code, recorder.Header(), body)
	}
}

// Over a real connection the answer is JSON, and says so.
func TestAnAnswerIsJSON(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	server := httptest.NewServer(&probe.PeerHandler{Authorize: knows("good"), Dial: dialling(&times, nil), Own: ownAddresses})
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+probe.PeerPath, strings.NewReader(`{"address":"10.244.1.7:9"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "bearer good")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(response.Body)
	if err != nil || !json.Valid(body) || response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v %s, %v", response.Header, body, err)
	}
}
