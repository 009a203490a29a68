// Package print formats the read model as lines for a terminal. It escapes all text from a cluster or a file in one
// place. Such text must never control the terminal or add lines.
package print
