package dashboard

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// policy lets the page load its own files and connect to its own server, and nothing else. Trusted types also keep
// scripts from turning text into markup.
var policy = strings.Join([]string{
	"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
	"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	"require-trusted-types-for 'script'", "trusted-types 'none'",
}, "; ")

// hosts are the accepted host names. With DNS rebinding, a foreign page resolves to loopback but sends its own host
// name.
var hosts = []string{"localhost", "127.0.0.1", "::1"}

// guard rejects requests that the page does not send, and sets the security headers.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Embedder-Policy", "require-corp")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		header.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "the dashboard is read-only: use GET or HEAD", http.StatusMethodNotAllowed)
		case !slices.Contains(hosts, hostname(r.Host)):
			http.Error(w, "the dashboard serves only this machine: use localhost or 127.0.0.1", http.StatusMisdirectedRequest)
		case !trusted(r):
			http.Error(w, "cross-site requests are not allowed", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(name)
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// trusted reports whether the request comes from the page itself, from the user's navigation, or from a client that is
// not a browser. Navigation includes links to the page, for example from a terminal in a browser: other sites can read
// nothing that way. Clients that are not browsers send no Sec-Fetch-Site.
func trusted(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
