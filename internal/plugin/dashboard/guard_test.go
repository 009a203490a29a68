package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

func TestResponsesHaveSecurityHeaders(t *testing.T) {
	url := serve(t, dashboard.New(dashboard.Options{Fleet: fleet(held("a"))}))
	for _, path := range []string{"/", "/app.js", "/style.css", "/nothing", "/api/times", "/api/history", "/api/nodes/a/explanation", "/api/stream"} {
		response := get(t, url+path)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := response.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := strings.Split(response.header.Get("Content-Security-Policy"), "; ")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
			"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
		} {
			if !slices.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s: %v", path, want, policy)
			}
		}
		if strings.Contains(strings.Join(policy, " "), "unsafe") {
			t.Errorf("%s: the policy allows something unsafe: %v", path, policy)
		}
	}
}

func TestOnlyReadingIsPossible(t *testing.T) {
	url := serve(t, dashboard.New(dashboard.Options{Fleet: fleet(held("a"))}))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "PROPFIND"} {
		for _, path := range []string{"/", "/api/nodes/a/explanation", "/api/stream"} {
			response := request(t, method, url+path)
			if response.code != http.StatusMethodNotAllowed || response.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, response.code, response.header.Get("Allow"))
			}
		}
	}
	if response := request(t, http.MethodHead, url+"/"); response.code != http.StatusOK {
		t.Errorf("HEAD: %d", response.code)
	}
}

func TestOnlyLoopbackHostNamesAreServed(t *testing.T) {
	url := serve(t, dashboard.New(dashboard.Options{Fleet: fleet()}))
	for host, want := range map[string]int{
		"localhost": http.StatusOK, "localhost:8080": http.StatusOK, "LOCALHOST:1": http.StatusOK, "127.0.0.1:80": http.StatusOK, "[::1]:80": http.StatusOK, "[::1]": http.StatusOK,
		"attacker.example": http.StatusMisdirectedRequest, "attacker.example:8080": http.StatusMisdirectedRequest, "localhost.attacker.example": http.StatusMisdirectedRequest,
		"127.0.0.1.nip.io": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest, "0.0.0.0": http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/", "/api/times"} {
			if response := get(t, url+path, "Host", host); response.code != want {
				t.Errorf("Host %s, %s: %d, want %d", host, path, response.code, want)
			}
		}
	}
}

func TestCrossSiteRequestsAreRejected(t *testing.T) {
	url := serve(t, dashboard.New(dashboard.Options{Fleet: fleet()}))
	cases := map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"a program that is no browser":            {"/api/times", nil, http.StatusOK},
		"the page itself":                         {"/api/times", []string{"Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		"an address that the user typed":          {"/", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, http.StatusOK},
		"a link on another site":                  {"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, http.StatusOK},
		"a link to data":                          {"/api/times", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, http.StatusForbidden},
		"a frame of another site":                 {"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, http.StatusForbidden},
		"a script of another site":                {"/app.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, http.StatusForbidden},
		"another port of this machine":            {"/api/stream", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, http.StatusForbidden},
		"data asked for by another site":          {"/api/times", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, http.StatusForbidden},
		"an explanation asked for by another one": {"/api/nodes/a/explanation", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, http.StatusForbidden},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if response := get(t, url+c.path, c.headers...); response.code != c.want {
				t.Errorf("%d, want %d", response.code, c.want)
			}
		})
	}
}
