// Package text formats messages and truncates them to the limits of the API.
package text

import (
	"fmt"
	"strings"
)

// Event and Condition are the maximum lengths of the note of an event and of the message of a condition, in bytes. The
// first is a limit of the API, the second is a limit of Readygate.
const (
	Event     = 1024
	Condition = 2048
)

// Count returns the number with its noun, e.g. 1 node or 2 nodes.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Cut truncates a text to the limit in bytes. A truncated text ends with an ellipsis.
func Cut(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
