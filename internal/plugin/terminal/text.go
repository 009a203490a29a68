package terminal

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// display measures and cuts lines in columns; the colours of a Style have no width.
var display = displaywidth.Options{ControlSequences: true}

// Cut shortens a line to this number of columns. Colours end with the line.
func Cut(line string, columns int) string { return display.TruncateString(line, columns, "…") }

// fold breaks a line at its spaces into rows of this number of columns, each with the indent of the line. It never breaks
// a word, so that URLs can be clicked and copied. A word that does not fit after the indent gets a row without indent. A
// word that is longer than a row is wrapped by the terminal.
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

// Clean makes untrusted text safe for one line of a terminal: no character can move the cursor, change colours, or change
// the reading direction. Line breaks and tabs become spaces.
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
