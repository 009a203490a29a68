package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fit cuts a drawing to the screen. One row stays free for the cursor. Where lines are left
// out, the first ones stay.
func fit(lines []string, columns, rows int) []string {
	lines = lines[:min(len(lines), max(1, rows-1))]
	cut := make([]string, len(lines))
	for i, line := range lines {
		cut[i] = Cut(line, columns)
	}
	return cut
}

// Cut shortens a line to so many columns. Colours take no room, and do not reach beyond it.
func Cut(line string, columns int) string {
	if width(line) <= columns {
		return line
	}
	var out strings.Builder
	room, coloured := columns-1, false
	for line != "" {
		if n := colour(line); n > 0 {
			out.WriteString(line[:n])
			coloured = line[:n] != reset
			line = line[n:]
			continue
		}
		if room <= 0 {
			break
		}
		r, n := utf8.DecodeRuneInString(line)
		out.WriteRune(r)
		line = line[n:]
		room--
	}
	out.WriteRune('…')
	if coloured {
		out.WriteString(reset)
	}
	return out.String()
}

// width counts characters, each of one column. A terminal that gives some of them two does
// not wrap the line, and cuts it itself.
func width(line string) int {
	n := 0
	for line != "" {
		if skip := colour(line); skip > 0 {
			line = line[skip:]
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
		n++
	}
	return n
}

// colour is the length of the sequence of a Style that the line begins with; else 0.
func colour(line string) int {
	if !strings.HasPrefix(line, "\x1b[") {
		return 0
	}
	end := strings.IndexByte(line, 'm')
	if end < 0 || strings.Trim(line[2:end], "0123456789;") != "" {
		return 0
	}
	return end + 1
}

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
