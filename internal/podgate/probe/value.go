package probe

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hasValue reports whether the first maxFile bytes of a content contain a value as a
// whole: 10.0.0.1/32 is neither in 110.0.0.1/32 nor in 10.0.0.1/320. The characters before and
// after it must not be a letter, a digit, or one of ". : - _", which addresses and names consist of.
// A value that starts or ends with another character, e.g. a quote, may have any neighbour there.
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

// ends reports whether a value ends between its first or last character and its neighbour. A slash does not end a
// value: for a pod without an IPv6 address, {ipv6}/128 is /128, which every such address contains.
func ends(edge, neighbour rune) bool {
	return !ofValue(neighbour) || !ofValue(edge) && edge != '/'
}

// ofValue reports whether values consist of such a character. An invalid byte counts too: it may be
// a part of a letter.
func ofValue(r rune) bool {
	return r == utf8.RuneError || unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".:-_", r)
}
