// Package terminal draws calmly: lines that are replaced in place on a terminal, and plain
// lines anywhere else. It knows nothing of what the lines say.
//
// Texts of others are made harmless by Clean before they become part of a line; lines
// themselves may carry the colours of a Style.
package terminal
