package probe

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hasValue says whether the beginning of a content, as much as is looked at, contains a value as a
// whole: 10.0.0.1/32 is neither in 110.0.0.1/32 nor in 10.0.0.1/320. The character before it and the
// one after it must not be a letter, a digit, or one of ". : - _", which addresses and names are of.
// A value that brings its own end, as a quote, may have anything beyond that.
func hasValue(content []byte, value string) bool {
	looked := content[:min(len(content), maxFile)]
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	for from := 0; ; {
		at := bytes.Index(looked[from:], []byte(value))
		if at < 0 {
			return false
		}
		begin := from + at
		end := begin + len(value)
		before, sizeBefore := utf8.DecodeLastRune(content[:begin])
		after, sizeAfter := utf8.DecodeRune(content[end:])
		if (sizeBefore == 0 || ends(first, before)) && (sizeAfter == 0 || ends(last, after)) {
			return true
		}
		from = begin + 1
	}
}

// ends says whether a value ends between its own edge and its neighbour. A slash is no end of its
// own: what is left of {ipv6}/128 for a pod without such an address is in every such address.
func ends(edge, neighbour rune) bool {
	return !ofValue(neighbour) || !ofValue(edge) && edge != '/'
}

// ofValue says that a character is one that values are of. What is no text counts as such: it may be
// half of a letter.
func ofValue(r rune) bool {
	return r == utf8.RuneError || unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".:-_", r)
}
