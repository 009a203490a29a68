package latch

import (
	"io"
	"strconv"
	"time"

	"github.com/readygate/readygate/internal/core/latchkey"
)

// logLine writes one line. A failed write is ignored.
func logLine(out io.Writer, text string) { _, _ = io.WriteString(out, "readygate-latch: "+text+"\n") }

// purpose is what the latch waits for.
func (l *latch) purpose() string {
	text := "waiting until annotation " + latchkey.Annotation + " of this pod opens the latch"
	if l.PodIP != "" {
		text += " for address " + l.PodIP
	} else {
		text += " for every sandbox: " + latchkey.PodIP + " is empty, so a key for one sandbox cannot be compared"
	}
	if l.Deadline > 0 {
		text += "; it opens by itself after " + l.Deadline.String()
	}
	return text
}

// question is what a user runs to see why the pod waits.
func (l *latch) question() string {
	pod := l.Pod
	if pod == "" {
		pod = "NAME"
	}
	question := "kubectl readiness why pod/" + pod
	if l.Namespace != "" {
		question += " --namespace=" + l.Namespace
	}
	return question
}

// openMessage explains why a key opens. Any client that may write annotations may have written it, so its
// contents are quoted.
func (l *latch) openMessage(key latchkey.Key) string {
	switch {
	case key.Always != "":
		return "the key is for every sandbox, with reason " + strconv.Quote(key.Always)
	case key.Sandbox.Precedes(l.made):
		return "the key looks older than this sandbox, and has stood for " + settlePeriod.String()
	}
	return "the key is for this sandbox"
}

// otherSandboxMessage explains why a key that opens some latch does not open this one, or not yet.
func (l *latch) otherSandboxMessage(sandbox latchkey.Sandbox) string {
	switch {
	case l.PodIP == "":
		return "the key is for address " + strconv.Quote(sandbox.IP) + ", and " + latchkey.PodIP + " is empty: it cannot be compared, and opens nothing"
	case sandbox.IP != l.PodIP:
		return "the key is of another sandbox: its address is " + strconv.Quote(sandbox.IP) + ", here it is " + strconv.Quote(l.PodIP)
	case sandbox.Rebooted(latchkey.Sandbox{Boot: l.boot}):
		return "the key is of another sandbox: its boot is " + strconv.Quote(sandbox.Boot) + ", here it is " + strconv.Quote(l.boot)
	default:
		return "the key looks older than this sandbox: it is from " + sandbox.Since.UTC().Format(time.RFC3339) + ", and the sandbox was made at " + l.made.UTC().Format(time.RFC3339) +
			". It opens when it has stood for " + settlePeriod.String() + " without being closed or replaced"
	}
}

// invalidKeyMessage reports an annotation that is no key.
func invalidKeyMessage(value string) string {
	const shown = 64
	if len(value) > shown {
		value = value[:shown] + "..."
	}
	return "annotation " + latchkey.Annotation + " is " + strconv.Quote(value) + ", which is no key: it opens nothing"
}
