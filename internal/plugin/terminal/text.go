package terminal

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// display measures and cuts lines in columns; the colours of a Style have no width.
var display = displaywidth.Options{ControlSequences: true}

// Cut shortens a line to so many columns. Colours do not reach beyond it.
func Cut(line string, columns int) string { return display.TruncateString(line, columns, "…") }

// fold breaks a line at its spaces into rows of so many columns. Each row is indented as the
// line is. A word is never broken here, so that a URL can be clicked and copied: one that does
// not fit beside the indent has a row without, and one that is too long for any row is left to
// the terminal.
func fold(line string, columns int) []string {
	line = strings.TrimRight(line, " ")
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var rows []string
	row := ""
	for line != "" {
		text := strings.TrimLeft(line, " ")
		gap := line[:len(line)-len(text)]
		word, _, _ := strings.Cut(text, " ")
		line = text[len(word):]
		next := row + gap + word
		if display.String(next) > columns {
			if row != "" {
				rows = append(rows, row)
			}
			if next = indent + word; display.String(next) > columns {
				next = word
			}
		}
		row = next
	}
	return append(rows, row)
}

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
