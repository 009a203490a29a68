package latch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/core/latchkey"
)

const (
	// pollPeriod is the interval at which the key is read without a watch. It is short compared with the second that the
	// kubelet takes to deliver a key and to observe that the latch has exited.
	pollPeriod = 100 * time.Millisecond
	// watchedPollPeriod is the interval with a watch: not every runtime delivers file events into a sandbox. Frequent
	// wake-ups have a cost, and every held pod has a latch.
	watchedPollPeriod = time.Second
	// reminderPeriod is the interval at which a waiting latch logs that it waits.
	reminderPeriod = 30 * time.Second
	// settlePeriod is how long a key that looks older than the sandbox must stay unchanged before it opens the latch. The
	// agent closes the key of an earlier sandbox within a few seconds, and the kubelet delivers the change about a second
	// later. A key that stays unchanged for longer is for this sandbox: a clock was set, or the kubelet has not written a
	// new time.
	settlePeriod = 10 * time.Second
)

// ErrStopped is returned if the context ended before the latch was open.
var ErrStopped = errors.New("stopped before the latch was open")

// Options configure a latch.
type Options struct {
	// Dir is where the downward API volume of the pod is mounted.
	Dir string
	// PodIP is the pod's address in this sandbox. Empty: it is not known, and no key for one sandbox opens the latch.
	PodIP string
	// BootFile has the boot ID of the node. Empty or unreadable: boots are not compared.
	BootFile string
	// SandboxFile was written when the sandbox was created. Empty or unreadable: the times of keys are not compared.
	SandboxFile string
	// Deadline is after how long the latch opens without a key. Zero: never.
	Deadline time.Duration
	// Pod and Namespace are for log lines. They may be empty.
	Pod, Namespace string
	// Changes signals when to read the key. Nil: there is no watch, and the key is read more often.
	Changes <-chan struct{}
	// Out is where log lines are written.
	Out io.Writer
}

// Run waits until the latch is open. Its only error is ErrStopped: the context ended before.
func (o *Options) Run(ctx context.Context) error {
	l := &latch{Options: o, started: time.Now(), made: writtenAt(o.SandboxFile), remindAfter: reminderPeriod, buffer: make([]byte, maxFile)}
	boot, _ := readShort(o.BootFile, l.buffer) // without one, boots are not compared
	l.boot = strings.TrimSpace(boot)
	logLine(l.Out, l.purpose())
	if _, err := os.Stat(l.Dir); err != nil {
		l.logProblem("the volume with the key is missing: " + err.Error())
	}
	return l.wait(ctx)
}

// latch is a running latch.
type latch struct {
	*Options
	boot    string
	started time.Time
	// made is when the sandbox was created; zero if that is not known.
	made time.Time
	// value is the value that was read last, and since is when it was read first.
	value string
	since time.Time
	// remindAfter is the time waited at which the next reminder is logged.
	remindAfter time.Duration
	// lastProblem is the problem that was logged last.
	lastProblem string
	// buffer is reused for every read, so that polling allocates nothing.
	buffer []byte
}

func (l *latch) wait(ctx context.Context) error {
	period := watchedPollPeriod
	if l.Changes == nil {
		period = pollPeriod
	}
	poll := time.NewTicker(period)
	defer poll.Stop()
	for {
		if ctx.Err() != nil { // checked first: a pod that is being terminated must not start
			return ErrStopped
		}
		if why := l.openReason(); why != "" {
			logLine(l.Out, "open after "+l.waited().Round(pollPeriod).String()+": "+why)
			return nil
		}
		l.remind()
		select {
		case <-ctx.Done():
		case <-l.Changes:
		case <-poll.C:
		}
	}
}

func (l *latch) waited() time.Duration { return time.Since(l.started) }

// openReason is why the latch is open; empty if it is not.
func (l *latch) openReason() string {
	if why := l.tryKey(); why != "" {
		return why
	}
	if l.Deadline > 0 && l.waited() >= l.Deadline {
		return "the deadline of " + l.Deadline.String() + " has passed, and no key has opened the latch"
	}
	return ""
}

// tryKey is why the key opens the latch; empty if it does not, or if there is none yet.
func (l *latch) tryKey() string {
	value, err := readShort(filepath.Join(l.Dir, latchkey.File), l.buffer)
	value = strings.TrimRight(value, " ") // a key that was written again is the same key
	if value != l.value {
		l.value, l.since = value, time.Now()
	}
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			l.logProblem("the key cannot be read: " + err.Error())
		}
		return ""
	}
	key, ok := latchkey.Parse(value)
	switch {
	case ok && key.Opens(l.PodIP, l.boot) && l.accepts(key):
		return l.openMessage(key)
	case ok && key.Open:
		l.logProblem(l.otherSandboxMessage(key.Sandbox))
	case !ok && strings.TrimSpace(value) != "":
		l.logProblem(invalidKeyMessage(value))
	}
	return ""
}

// accepts reports whether a key with the address and the boot of this sandbox is for it. If a pod keeps its address, a key
// that looks older may be for an earlier sandbox: accepts waits for the agent to close it. It does not reject the key
// forever, otherwise a clock that was set would hold the pod indefinitely.
func (l *latch) accepts(key latchkey.Key) bool {
	return !key.Sandbox.Precedes(l.made) || time.Since(l.since) >= settlePeriod
}

// remind logs at each reminderPeriod that the latch waits.
func (l *latch) remind() {
	if waited := l.waited(); waited >= l.remindAfter {
		l.remindAfter = waited + reminderPeriod
		logLine(l.Out, "still waiting after "+waited.Round(time.Second).String()+"; to see what it waits for, run: "+l.question())
	}
}

// logProblem logs a problem once.
func (l *latch) logProblem(text string) {
	if text != l.lastProblem {
		l.lastProblem = text
		logLine(l.Out, text)
	}
}
