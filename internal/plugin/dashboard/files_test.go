package dashboard_test

import (
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

// sources visits the files of the page.
func sources(t *testing.T, visit func(name, text string)) {
	t.Helper()
	entries, err := fs.ReadDir(dashboard.Static, "static")
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, entry := range entries {
		data, err := fs.ReadFile(dashboard.Static, "static/"+entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		visit(entry.Name(), string(data))
	}
}

func TestEveryFileIsServedWithItsType(t *testing.T) {
	url := serve(t, dashboard.New(dashboard.Options{Fleet: fleet()}))
	want := map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	sources(t, func(name, _ string) {
		response := get(t, url+"/"+name)
		if got := response.header.Get("Content-Type"); response.code != http.StatusOK || got != want[path.Ext(name)] {
			t.Errorf("%s: %d, %q", name, response.code, got)
		}
		if again := get(t, url+"/"+name, "If-None-Match", response.header.Get("ETag")); again.code != http.StatusNotModified {
			t.Errorf("%s asked for again: %d", name, again.code)
		}
	})
	for _, missing := range []string{"/nothing", "/static/app.js", "/../server.go", "/api/", "/api/nodes/a"} {
		if response := get(t, url+missing); response.code != http.StatusNotFound {
			t.Errorf("%s: %d", missing, response.code)
		}
	}
}

// The content security policy would also block these in the browser.
func TestNoTextCanBecomeMarkup(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|eval\(|new Function|setAttribute\("(style|on)|javascript:| on[a-z]+="| style="|<script>|<style`)
	sources(t, func(name, text string) {
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	})
}

func TestPageLoadsNothingFromOtherSites(t *testing.T) {
	elsewhere := regexp.MustCompile(`(https?:)?//[a-z0-9]+[.:][a-z0-9]+|@import|url\(`)
	sources(t, func(name, text string) {
		text = strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, "")
		if found := elsewhere.FindString(text); found != "" {
			t.Errorf("%s asks for %q", name, found)
		}
	})
}
