// Package text words messages and fits them into the limits of the API.
package text

import (
	"fmt"
	"strings"
)

// Event and Condition are the most bytes that a note of an event may have, and that we let the
// message of a condition have.
const (
	Event     = 1024
	Condition = 2048
)

// Count is the number with its noun, e.g. 1 node or 2 nodes.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Cut shortens a text to this many bytes and shows that it did.
func Cut(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
