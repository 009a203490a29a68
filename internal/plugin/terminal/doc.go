// Package terminal writes lines that are replaced in place on a terminal, and plain lines elsewhere. It is independent
// of their content.
//
// Callers must escape untrusted text with Clean before it becomes part of a line. Lines may contain the colours of a
// Style.
package terminal
