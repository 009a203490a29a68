package terminal

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether the file is a terminal that supports drawing in place.
func IsTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// Style colours text. The zero value leaves text unchanged.
type Style struct{ colours bool }

// NewStyle returns a style that colours on a terminal, unless NO_COLOR is set.
func NewStyle(isTerminal bool) Style {
	return Style{colours: isTerminal && os.Getenv("NO_COLOR") == ""}
}

// Bold is for the most important text.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for the least important text.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red is for failures.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Green is for success.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow is for pending states.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

func (s Style) paint(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
