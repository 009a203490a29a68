package check_test

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/version"
)

func TestTheStatusDecides(t *testing.T) {
	t.Parallel()
	server := web(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
	})
	for name, test := range map[string]struct {
		status []string
		good   []int
		bad    []int
	}{
		"without a range, 2xx is healthy": {good: []int{200, 204, 299}, bad: []int{199 + 101, 304, 401, 404, 500, 503}},
		"a code":                          {status: []string{"401"}, good: []int{401}, bad: []int{200, 400, 402}},
		"a range":                         {status: []string{"400-403"}, good: []int{400, 403}, bad: []int{200, 404}},
		"several":                         {status: []string{"200-299", "401"}, good: []int{200, 299, 401}, bad: []int{300, 400, 402}},
		"all":                             {status: []string{"100-599"}, good: []int{200, 302, 404, 599}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := func(code int) (check.Observation, string) {
				url := server.URL + "/" + strconv.Itoa(code)
				return observed(t, check.Spec{HTTP: &check.HTTP{URL: url, Status: test.status}}, long), url + " returned " + strconv.Itoa(code)
			}
			for _, code := range test.good {
				got, words := ask(code)
				expect(t, got, answers(words))
			}
			for _, code := range test.bad {
				got, words := ask(code)
				expect(t, got, isNotReady(words))
			}
		})
	}
}

func TestTheRequestIsAsConfigured(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Request]
	server := web(t, func(_ http.ResponseWriter, r *http.Request) { got.Store(r) })
	observed(t, check.Spec{HTTP: &check.HTTP{
		URL:     server.URL + "/ready?full=1",
		Headers: map[string]string{"Host": "agent.example", "x-token": "secret", "Accept": "text/plain"},
	}}, long)
	r := got.Load()
	for what, pair := range map[string][2]string{
		"method":     {r.Method, "GET"},
		"URL":        {r.URL.String(), "/ready?full=1"},
		"host":       {r.Host, "agent.example"},
		"token":      {r.Header.Get("X-Token"), "secret"},
		"accept":     {r.Header.Get("Accept"), "text/plain"},
		"user agent": {r.UserAgent(), "readygate-reporter/" + version.Version},
		"encoding":   {r.Header.Get("Accept-Encoding"), ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
	observed(t, check.Spec{HTTP: &check.HTTP{URL: server.URL, Headers: map[string]string{"User-Agent": "mine"}}}, long)
	if agent := got.Load().UserAgent(); agent != "mine" {
		t.Errorf("the user agent of the user is %q", agent)
	}
}

func TestEachRunHasAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 3)
	server := web(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.RemoteAddr })
	c := made(t, check.Spec{HTTP: &check.HTTP{URL: server.URL}}, check.Env{})
	before := map[string]bool{}
	for range 3 {
		ran(t, c, long)
		before[<-seen] = true
	}
	if len(before) != 3 {
		t.Errorf("the clients of 3 runs are %v", before)
	}
}

func TestAPasswordInTheURLIsSentAndNotShown(t *testing.T) {
	t.Parallel()
	server := web(t, func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	url := strings.Replace(server.URL, "http://", "http://me:secret@", 1)
	expect(t, observed(t, check.Spec{HTTP: &check.HTTP{URL: url}}, long), answers(strings.Replace(url, "secret", "xxxxx", 1)+" returned 200"))
}

func TestARedirectOnTheSameHost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hops   int
		status []string
		want   func(string) check.Observation
		asked  int64
	}{
		"is followed":                     {hops: 1, want: func(u string) check.Observation { return answers(u + " returned 200") }, asked: 2},
		"is followed five times":          {hops: 5, want: func(u string) check.Observation { return answers(u + " returned 200") }, asked: 6},
		"is not followed six times":       {hops: 6, want: func(u string) check.Observation { return isNotReady(u + " redirects too often") }, asked: 6},
		"is what the user may be waiting": {hops: 9, status: []string{"200-399"}, want: func(u string) check.Observation { return answers(u + " returned 307") }, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			server := web(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) <= int64(test.hops) {
					http.Redirect(w, r, "/next", http.StatusTemporaryRedirect)
				}
			})
			expect(t, observed(t, check.Spec{HTTP: &check.HTTP{URL: server.URL, Status: test.status}}, long), test.want(server.URL))
			if asked.Load() != test.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), test.asked)
			}
		})
	}
}

func TestCertificatesAreVerifiedAsConfigured(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	here := secure(t, ca.issue(t, "127.0.0.1", time.Now().Add(time.Hour)), ok)
	named := secure(t, ca.issue(t, "agent.example", time.Now().Add(time.Hour)), ok)
	expired := secure(t, ca.issue(t, "127.0.0.1", time.Now().Add(-time.Minute)), ok)
	for name, test := range map[string]struct {
		url string
		tls check.TLS
	}{
		"an authority of the user":      {here.URL, check.TLS{CAFile: ca.file(t)}},
		"a name of the user":            {named.URL, check.TLS{CAFile: ca.file(t), ServerName: "agent.example"}},
		"any certificate":               {here.URL, check.TLS{InsecureSkipVerify: true}},
		"any certificate, even expired": {expired.URL, check.TLS{InsecureSkipVerify: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, observed(t, check.Spec{HTTP: &check.HTTP{URL: test.url, TLS: test.tls}}, long), answers(test.url+" returned 200"))
		})
	}
}

func TestACAFileMayBeReplacedAtAnyTime(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t), newAuthority(t)
	server := secure(t, after.issue(t, "127.0.0.1", time.Now().Add(time.Hour)), ok)
	file := before.file(t)
	c := made(t, check.Spec{HTTP: &check.HTTP{URL: server.URL, TLS: check.TLS{CAFile: file}}}, check.Env{})
	expect(t, ran(t, c, long), noAnswer(server.URL+": the certificate is signed by an unknown authority: set caFile, or insecureSkipVerify"))
	after.write(t, file)
	expect(t, ran(t, c, long), answers(server.URL+" returned 200"))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect(t, ran(t, c, long), noAnswer("caFile "+file+" cannot be read: no such file or directory"))
}

func TestARequestMayGoToASocket(t *testing.T) {
	t.Parallel()
	listener, path := socket(t)
	var host atomic.Value
	server := &http.Server{ReadHeaderTimeout: long, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host.Store(r.Host) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	spec := check.Spec{HTTP: &check.HTTP{URL: "http://agent.invalid/ready", UnixSocket: path}}
	expect(t, observed(t, spec, long), answers("http://agent.invalid/ready at "+path+" returned 200"))
	if host.Load() != "agent.invalid" {
		t.Errorf("the host is %v", host.Load())
	}
	_ = server.Close()
	expect(t, observed(t, spec, long), noAnswer("http://agent.invalid/ready at "+path+": no such file"))
}

// This test does not run in parallel: the environment is shared.
func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	var asked atomic.Int64
	proxy := web(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	for _, spec := range []check.Spec{
		at("agent.invalid:80"),
		atHTTPS("agent.invalid:443", check.TLS{}),
		{GRPC: &check.GRPC{Address: "agent.invalid:80"}},
		{Peers: &check.Peers{Ready: "agent.invalid:80", Everyone: "agent.invalid:81"}},
	} {
		if got := observed(t, spec, long); got.Healthy() {
			t.Errorf("%+v is healthy: %s", spec, got.Message)
		}
	}
	if asked.Load() != 0 {
		t.Error("the proxy was asked")
	}
}
