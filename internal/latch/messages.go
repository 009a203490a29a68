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
	text := "waiting for a key in annotation " + latchkey.Annotation + " of this pod"
	if l.PodIP != "" {
		text += " for address " + l.PodIP
	} else {
		text += " for every sandbox: " + latchkey.PodIP + " is empty, so the latch cannot compare a key for one sandbox"
	}
	if l.Deadline > 0 {
		text += "; the latch opens without a key after " + l.Deadline.String()
	}
	return text
}

// question is the command that explains why the pod waits.
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

// openMessage explains why a key opens the latch. Any client that may write annotations may have written the key, so its
// contents are quoted.
func (l *latch) openMessage(key latchkey.Key) string {
	switch {
	case key.Always != "":
		return "the key is for every sandbox, with reason " + strconv.Quote(key.Always)
	case key.Sandbox.Precedes(l.made):
		return "the key looks older than this sandbox, and was not closed or replaced for " + settlePeriod.String()
	}
	return "the key is for this sandbox"
}

// otherSandboxMessage explains why an open key does not open this latch, or not yet.
func (l *latch) otherSandboxMessage(sandbox latchkey.Sandbox) string {
	switch {
	case l.PodIP == "":
		return "the key is for address " + strconv.Quote(sandbox.IP) + ", and " + latchkey.PodIP + " is empty: the latch cannot compare them and stays closed"
	case sandbox.IP != l.PodIP:
		return "the key is for another sandbox: its address is " + strconv.Quote(sandbox.IP) + ", this sandbox has " + strconv.Quote(l.PodIP)
	case sandbox.Rebooted(latchkey.Sandbox{Boot: l.boot}):
		return "the key is for another sandbox: its boot ID is " + strconv.Quote(sandbox.Boot) + ", the node has " + strconv.Quote(l.boot)
	default:
		return "the key looks older than this sandbox: it is from " + sandbox.Since.UTC().Format(time.RFC3339) + ", and the sandbox was created at " + l.made.UTC().Format(time.RFC3339) +
			". It opens the latch if it is not closed or replaced for " + settlePeriod.String()
	}
}

// invalidKeyMessage describes an annotation that is not a valid key.
func invalidKeyMessage(value string) string {
	const shown = 64
	if len(value) > shown {
		value = value[:shown] + "..."
	}
	return "annotation " + latchkey.Annotation + " is " + strconv.Quote(value) + ", which is not a valid key: the latch stays closed"
}
