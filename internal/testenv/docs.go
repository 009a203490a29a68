package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PageCommands returns the blocks of shell commands of a page, given by its path in the repository, that are
// marked with <!-- run: mark --> on the line before, in their order.
func PageCommands(t testing.TB, page, mark string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(), page))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, rest := range strings.Split(string(text), "<!-- run: "+mark+" -->\n```sh\n")[1:] {
		block, _, closed := strings.Cut(rest, "\n```")
		if !closed {
			t.Fatalf("%s: the block after %q does not end", page, mark)
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block marked <!-- run: %s -->", page, mark)
	}
	return blocks
}
