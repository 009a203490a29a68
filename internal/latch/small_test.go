package latch_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A latch runs in every held pod. Before you add a package here, check what it adds to the binary: fmt adds some hundred
// KiB, a client some ten MiB.
func TestALatchImportsLittle(t *testing.T) {
	t.Parallel()
	const ours = "github.com/readygate/readygate/internal/"
	allowed := []string{"context", "errors", "io", "os", "os/signal", "path/filepath", "strconv", "strings", "syscall", "time",
		ours + "latch", ours + "core/latchkey", ours + "version"}
	for _, dir := range []string{".", "../core/latchkey", "../version", "../../cmd/readygate-latch"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has files %v, %v", dir, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			must(t, err)
			for _, spec := range source.Imports {
				if path, err := strconv.Unquote(spec.Path.Value); err != nil || !slices.Contains(allowed, path) {
					t.Errorf("%s imports %s, %v", file, spec.Path.Value, err)
				}
			}
		}
	}
}
