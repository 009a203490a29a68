package cni

import (
	"regexp"
	"strings"

	"github.com/readygate/readygate/internal/text"
)

// maxMessage is how much of a plugin's own words a text repeats.
const maxMessage = 110

// unstable are the parts of a message that differ each time, and what stands for them.
var unstable = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[^\s"']*/netns/` + idPrefix + `[0-9a-f]+`), "its namespace"},
	{regexp.MustCompile(idPrefix + `[0-9a-f]+`), "the canary"},
	// Times: as logs begin with them (klog too), and how long something took.
	{regexp.MustCompile(`\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `), ""},
	{regexp.MustCompile(`\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+\.\d+(ns|µs|us|ms|s)\b|\b\d+(ns|µs|us|ms)\b`), "<time>"},
	// The near end of a connection: "127.0.0.1:40112->127.0.0.1:6443".
	{regexp.MustCompile(`:\d+->`), "->"},
	{regexp.MustCompile(`\b(pid|PID)([ =:]+)\d+`), "$1$2<n>"},
	// Interfaces that plugins name at random, and other identifiers.
	{regexp.MustCompile(`\b(veth|cali|lxc|tap)[0-9a-f]{5,}\b`), "$1<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<id>"},
	{regexp.MustCompile(`\b(0x)?[0-9a-f]{9,}\b`), "<id>"},
}

// scrub makes the words of a plugin fit for a text: one line, short, the same each time.
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
