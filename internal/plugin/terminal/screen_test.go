package terminal_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

func drawnOn(columns, rows int) (*terminal.Screen, *emulator) {
	e := newEmulator(columns)
	s := terminal.NewScreen(e, true)
	s.Resize(columns, rows)
	return s, e
}

func expect(t *testing.T, e *emulator, want ...string) {
	t.Helper()
	if got := e.text(); got != strings.Join(want, "\n") {
		t.Errorf("the screen shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestADrawingTakesThePlaceOfTheOneBefore(t *testing.T) {
	s, e := drawnOn(40, 10)
	s.Draw([]string{"one", "two", "three"})
	s.Draw([]string{"1", "two and more"})
	expect(t, e, "1", "two and more")
	s.Draw([]string{"1", "2", "3", "4"})
	expect(t, e, "1", "2", "3", "4")
}

func TestPrintedLinesStayAboveTheDrawing(t *testing.T) {
	s, e := drawnOn(40, 10)
	s.Print("first")
	s.Draw([]string{"a", "b"})
	s.Print("second")
	s.Draw([]string{"c"})
	expect(t, e, "first", "second", "c")
}

func TestADrawingIsOneWriteAndAnUnchangedOneIsNone(t *testing.T) {
	s, e := drawnOn(40, 10)
	s.Draw([]string{"a", "b"})
	s.Draw([]string{"a", "b"})
	if e.writes != 1 {
		t.Errorf("%d writes for one change: that flickers", e.writes)
	}
}

func TestADrawingIsCutToTheScreen(t *testing.T) {
	s, e := drawnOn(10, 4)
	var lines []string
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("%d is a long line", i))
	}
	s.Draw(lines)
	s.Draw(append(lines, "more"))
	expect(t, e, "0 is a lo…", "1 is a lo…", "2 is a lo…")
}

func TestNarrowerTerminalKeepsNoOldText(t *testing.T) {
	s, e := drawnOn(20, 10)
	s.Draw([]string{"as wide as it can be", "short"})
	e.narrow(10)
	s.Resize(10, 10)
	s.Draw([]string{"new", "lines"})
	expect(t, e, "new", "lines")
}

func TestTheTerminalIsLeftAsItWas(t *testing.T) {
	s, e := drawnOn(20, 10)
	s.Draw([]string{"a"})
	if !e.hidden {
		t.Error("the cursor jumps about while it is drawn")
	}
	s.Close()
	s.Close()
	if e.hidden || e.nowrap {
		t.Errorf("cursor hidden %v, wrapping off %v", e.hidden, e.nowrap)
	}
	expect(t, e, "a")
}

func TestALineThatFillsTheRowIsWhole(t *testing.T) {
	s, e := drawnOn(10, 10)
	s.Draw([]string{"0123456789", "one character too many"})
	expect(t, e, "0123456789", "one chara…")
	s.Draw([]string{"9876543210", "short"})
	expect(t, e, "9876543210", "short")
}

func TestPrintedLinesAreFoldedAtSpaces(t *testing.T) {
	red, off := "\x1b[31m", "\x1b[0m"
	for line, want := range map[string][]string{
		"":                                 {""},
		"fits in a row":                    {"fits in a row"},
		"from the shortest to the longest": {"from the shortest to", "the longest"},
		"two  gaps   stay,  not  here":     {"two  gaps   stay,", "not  here"},
		"  indented as the first row is":   {"  indented as the", "  first row is"},
		red + "colours take no room at all" + off: {"colours take no room", "at all"},
		"see http://127.0.0.1:123 there":          {"see", "http://127.0.0.1:123", "there"},
		"  http://127.0.0.1:123":                  {"http://127.0.0.1:123"},
		"a http://127.0.0.1:12345/ too":           {"a", "http://127.0.0.1:123", "45/", "too"},
		"two\nlines":                              {"two", "lines"},
	} {
		s, e := drawnOn(20, 10)
		s.Print(line, "end")
		expect(t, e, append(want, "end")...)
	}
}

func TestPrintedLinesAreNotFoldedWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("a long line ", 20)
	terminal.NewScreen(&out, false).Print(long)
	if got := out.String(); got != long+"\n" {
		t.Errorf("written: %q", got)
	}
}

func TestColoursHaveNoWidthAndAreReset(t *testing.T) {
	red := "\x1b[31m"
	for line, want := range map[string]string{
		"plain":                      "plain",
		"longer than":                "longe…",
		red + "red\x1b[0m":           red + "red\x1b[0m",
		red + "very red\x1b[0m":      red + "very …\x1b[0m",
		"a" + red + "b\x1b[0mcdefgh": "a" + red + "b\x1b[0mcde…",
		"ünïcödé":                    "ünïcö…",
		"两列宽":                        "两列宽",
		"两列宽 ":                       "两列…",
	} {
		if got := terminal.Cut(line, 6); got != want {
			t.Errorf("Cut(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestNoColoursWhereTheyAreNotWanted(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	if got := terminal.NewStyle(true).Red("x"); got == "x" {
		t.Error("no colours on a terminal")
	}
	if got := terminal.NewStyle(false).Red("x"); got != "x" {
		t.Errorf("colours in a file: %q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := terminal.NewStyle(true).Red("x"); got != "x" {
		t.Errorf("colours in spite of NO_COLOR: %q", got)
	}
}

func TestControlCharactersAreRemovedFromText(t *testing.T) {
	for hostile, want := range map[string]string{
		"\x1b[2Jgone":          "[2Jgone",
		"title\x1b]0;x\x07":    "title]0;x",
		"a\nb\tc\r":            "a b c ",
		"\u009b31mred":         "31mred",
		"abc\u202edef\u2066":   "abcdef",
		"two\u2028lines":       "two lines",
		"back\b\b\x7f":         "back",
		"plain, ünïcödé and ✓": "plain, ünïcödé and ✓",
		"bad \xff utf-8":       "bad  utf-8",
	} {
		if got := terminal.Clean(hostile); got != want {
			t.Errorf("Clean(%q) = %q, want %q", hostile, got, want)
		}
	}
}
