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

// Screen shows a drawing, the latest one, below what was printed. It may be used by several
// goroutines.
//
// A drawing takes the place of the one before, in one write, and is cut to the size of the terminal. Where
// the output is no terminal, only print.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool
	size  func() (columns, rows int)
	drawn []string
	hides bool // the cursor is hidden
}

// Sequences that every terminal of today knows. Those that one does not know it ignores.
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

// NewScreen draws on w. Whoever uses it calls Close at the end.
func NewScreen(w io.Writer, isTerminal bool) *Screen {
	return &Screen{w: w, live: isTerminal, size: func() (int, int) { return sizeOf(w) }}
}

// sizeOf is that of the terminal; 80 by 24 where nobody knows.
func sizeOf(w io.Writer) (columns, rows int) {
	if file, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

// Size is how much fits on the screen.
func (s *Screen) Size() (columns, rows int) { return s.size() }

// Draw shows these lines instead of those that were drawn before, on a terminal. They are cut to the screen: one row
// stays free for the cursor, and where lines are left out, the first ones stay.
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

// Print writes lines that stay, above the drawing. On a terminal long ones are folded at spaces;
// elsewhere a line stays a line.
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

// Close leaves the last drawing where it is, and the terminal as it was.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hides {
		s.write([]byte(showCursor))
	}
	s.hides, s.drawn = false, nil
}

// update goes back to where the drawing begins, and writes over it. Printed lines may wrap;
// those of a drawing never do. A line is cleared before it is written: after one that fills the
// row the cursor is still on its last character, and would clear that.
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

// height is how many rows lines take now: a terminal that became narrower has wrapped them.
func height(lines []string, columns int) int {
	rows := 0
	for _, line := range lines {
		rows += max(1, (display.String(line)+columns-1)/columns)
	}
	return rows
}

// write ignores an error: the reader of the screen is gone.
func (s *Screen) write(data []byte) { _, _ = s.w.Write(data) }
