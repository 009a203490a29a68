// Package text fits messages into the limits of the API.
package text

import "strings"

// Event and Condition are the most bytes that a note of an event may have, and that we let the
// message of a condition have.
const (
	Event     = 1024
	Condition = 2048
)

// Cut shortens a text to this many bytes and shows that it did.
func Cut(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
