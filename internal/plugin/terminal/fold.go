package terminal

import "strings"

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
		if width(next) > columns {
			if row != "" {
				rows = append(rows, row)
			}
			if next = indent + word; width(next) > columns {
				next = word
			}
		}
		row = next
	}
	return append(rows, row)
}
