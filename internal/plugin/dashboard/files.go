package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed static
var static embed.FS

// types are those of our files. What the machine believes of them can be wrong, and a browser
// that may not guess would then run nothing.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is an embedded file as it is served.
type file struct {
	content     []byte
	contentType string
	tag         string
}

// files are by the path under which they are served.
var files = func() map[string]file {
	all := map[string]file{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, entry := range entries {
		content, err := static.ReadFile("static/" + entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		all["/"+entry.Name()] = file{content: content, contentType: types[path.Ext(entry.Name())], tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	all["/"] = all["/index.html"]
	return all
}()

// serveFile serves an embedded file. A browser may keep it, and asks whether it is still so:
// the next version of the program may serve another one on the same port.
func serveFile(w http.ResponseWriter, r *http.Request) {
	f, there := files[r.URL.Path]
	if !there {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
