package terminal

import (
	"strings"
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
