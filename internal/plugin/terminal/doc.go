// Package terminal writes lines that are replaced in place on a terminal, and plain lines elsewhere. It knows
// nothing of their content.
//
// Clean escapes untrusted text before it becomes part of a line; lines themselves may have the colours of a Style.
package terminal
