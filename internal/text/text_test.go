package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/readygate/readygate/internal/text"
)

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		strings.Repeat("a", 10): strings.Repeat("a", 10),
		strings.Repeat("a", 11): strings.Repeat("a", 7) + "…",
		strings.Repeat("ä", 6):  "äää…", // never half a character
	} {
		if got := text.Cut(in, 10); got != want || len(got) > 10 || !utf8.ValidString(got) {
			t.Errorf("%q is cut to %q, want %q", in, got, want)
		}
	}
}
