package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Screen shows the latest drawing below the printed lines. It is safe for concurrent use.
//
// A drawing replaces the previous one in a single write, and is cut to the size of the terminal. If the output is not a
// terminal, use only Print.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool
	size  func() (columns, rows int)
	drawn []string
	hides bool // the cursor is hidden
}

// Control sequences. Terminals ignore those that they do not support.
const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	noWrap      = "\x1b[?7l"
	wrap        = "\x1b[?7h"
	beginUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// NewScreen returns a screen that draws on w. The caller must call Close at the end.
func NewScreen(w io.Writer, isTerminal bool) *Screen {
	return &Screen{w: w, live: isTerminal, size: func() (int, int) { return sizeOf(w) }}
}

// sizeOf returns the size of the terminal; 80 by 24 if unknown.
func sizeOf(w io.Writer) (columns, rows int) {
	if file, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

// Size returns the size of the screen.
func (s *Screen) Size() (columns, rows int) { return s.size() }

// Draw replaces the drawing on a terminal with these lines. Lines are cut to the screen: one row stays free for the
// cursor, and the last lines are dropped if there are too many.
func (s *Screen) Draw(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.size()
	lines = slices.Clone(lines[:min(len(lines), max(1, rows-1))])
	for i, line := range lines {
		lines[i] = Cut(line, columns)
	}
	if slices.Equal(lines, s.drawn) {
		return
	}
	s.update(nil, lines, columns)
}

// Print writes permanent lines above the drawing. On a terminal, long lines are folded at spaces.
func (s *Screen) Print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		for _, line := range lines {
			s.write([]byte(line + "\n"))
		}
		return
	}
	columns, _ := s.size()
	var rows []string
	for _, text := range lines {
		for line := range strings.SplitSeq(text, "\n") {
			rows = append(rows, fold(line, columns)...)
		}
	}
	s.update(rows, s.drawn, columns)
}

// Close keeps the last drawing and restores the cursor.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hides {
		s.write([]byte(showCursor))
	}
	s.hides, s.drawn = false, nil
}

// update moves to the start of the drawing and overwrites it. Printed lines may wrap; lines of a drawing never do. A line
// is cleared before it is written: after a line that fills the row, the cursor is on its last character, and clearing
// would remove that character.
func (s *Screen) update(printed, lines []string, columns int) {
	var out bytes.Buffer
	out.WriteString(beginUpdate)
	if !s.hides {
		out.WriteString(hideCursor)
	}
	if up := height(s.drawn, columns); up > 0 {
		fmt.Fprintf(&out, "\r\x1b[%dA", up)
	}
	if len(printed) > 0 {
		out.WriteString(clearBelow)
	}
	for _, line := range printed {
		out.WriteString(line + "\n")
	}
	out.WriteString(noWrap)
	for _, line := range lines {
		out.WriteString(clearLine + line + "\n")
	}
	out.WriteString(clearBelow + wrap + endUpdate)
	s.write(out.Bytes())
	s.drawn, s.hides = lines, true
}

// height returns the number of rows that the lines occupy now: a terminal that became narrower has wrapped them.
func height(lines []string, columns int) int {
	rows := 0
	for _, line := range lines {
		rows += max(1, (display.String(line)+columns-1)/columns)
	}
	return rows
}

// write ignores errors: the terminal is closed.
func (s *Screen) write(data []byte) { _, _ = s.w.Write(data) }
