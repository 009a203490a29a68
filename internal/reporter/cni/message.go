package cni

import (
	"regexp"
	"strings"

	"github.com/readygate/readygate/internal/text"
)

// maxMessage is the maximum length of a plugin's message in the text of an Error.
const maxMessage = 110

// unstable lists the parts of a message that differ each time, and their replacements.
var unstable = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[^\s"']*/netns/` + idPrefix + `[0-9a-f]+`), "its namespace"},
	{regexp.MustCompile(idPrefix + `[0-9a-f]+`), "the canary"},
	// Times at the start of log lines (klog too), and durations.
	{regexp.MustCompile(`\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `), ""},
	{regexp.MustCompile(`\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+\.\d+(ns|µs|us|ms|s)\b|\b\d+(ns|µs|us|ms)\b`), "<time>"},
	// The local port of a connection: "127.0.0.1:40112->127.0.0.1:6443".
	{regexp.MustCompile(`:\d+->`), "->"},
	{regexp.MustCompile(`\b(pid|PID)([ =:]+)\d+`), "$1$2<n>"},
	// Interfaces with random names, and other identifiers.
	{regexp.MustCompile(`\b(veth|cali|lxc|tap)[0-9a-f]{5,}\b`), "$1<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<id>"},
	{regexp.MustCompile(`\b(0x)?[0-9a-f]{9,}\b`), "<id>"},
}

// scrub makes the message of a plugin one line, short and stable.
func scrub(message string) string {
	message = text.Cut(strings.ToValidUTF8(message, "?"), 4<<10)
	for _, part := range unstable {
		message = part.what.ReplaceAllString(message, part.with)
	}
	message = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, message)
	return text.Cut(strings.Join(strings.Fields(message), " "), maxMessage)
}
