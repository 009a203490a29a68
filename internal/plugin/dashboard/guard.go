package dashboard

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// policy lets the page load its own files and talk to its own server, and nothing else. With
// trusted types a script cannot even turn text into markup.
var policy = strings.Join([]string{
	"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
	"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	"require-trusted-types-for 'script'", "trusted-types 'none'",
}, "; ")

// hosts are the names under which this machine knows itself. A page of a stranger whose name
// suddenly resolves to loopback (DNS rebinding) sends its own name.
var hosts = []string{"localhost", "127.0.0.1", "::1"}

// guard refuses what no page of ours asks for, and says to the browser what the page may do.
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
		case !ofOurPage(r):
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

// ofOurPage says whether the request comes from the page or from a person. Somebody who
// follows a link to the page, as from a terminal in a browser, is a person; nothing can be
// read across sites that way. A client that is no browser does not say where it comes from.
func ofOurPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
