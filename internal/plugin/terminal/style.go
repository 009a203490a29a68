package terminal

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal says whether the file is a terminal that can draw in place.
func IsTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// Style colours text, or leaves it as it is. The zero value leaves it.
type Style struct{ colours bool }

// NewStyle colours on a terminal, unless the user has set NO_COLOR to anything.
func NewStyle(isTerminal bool) Style {
	return Style{colours: isTerminal && os.Getenv("NO_COLOR") == ""}
}

// Bold is for what matters most.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for what matters least.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red is for what went wrong.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Green is for what is as it should be.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow is for what is waited for.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

func (s Style) paint(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
