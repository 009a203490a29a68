// Package print writes the read model as lines for a terminal. It escapes all text from a cluster or a file in one
// place, so that such text can neither control the terminal nor add lines.
package print
