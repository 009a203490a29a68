package terminal

import (
	"strings"
	"unicode"
)

// Clean makes text of others fit for one line of a terminal: no character in it can move the
// cursor, change colours, or turn the direction in which text is read. Line breaks and tabs
// become spaces.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
}
