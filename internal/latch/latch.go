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
	// pollPeriod is how often the key is read if nobody tells of changes. The kubelet takes about a
	// second to bring it and to see that the latch has ended: this adds little.
	pollPeriod = 100 * time.Millisecond
	// watchedPeriod is that if somebody does: not every runtime lets changes be seen from inside of a
	// sandbox. A process that wakes often costs more than what it does then, and there is one in
	// every pod that waits.
	watchedPeriod = time.Second
	// reminderPeriod is how often a latch that waits says so.
	reminderPeriod = 30 * time.Second
	// doubtPeriod is how long a key that looks older than the sandbox must stand before it opens. The
	// agent closes the key of an earlier sandbox within a few seconds, and the kubelet brings that in
	// about a second more. A key that stands for longer is of this sandbox: a clock was set, or the
	// kubelet has not told of a new time.
	doubtPeriod = 10 * time.Second
)

// ErrStopped is why a latch ended that nobody opened: it was told to.
var ErrStopped = errors.New("stopped before the latch was open")

// Options are what a latch is told.
type Options struct {
	// Dir is where the downward API volume of the pod is mounted.
	Dir string
	// PodIP is the pod's address in this sandbox. Empty: it is not known, and no key for one sandbox
	// opens the latch.
	PodIP string
	// BootFile has the boot ID of the node. Empty or unreadable: boots are not compared.
	BootFile string
	// SandboxFile was written when the sandbox was made. Empty or unreadable: the times of keys are
	// not compared.
	SandboxFile string
	// Deadline is after how long the latch opens by itself. Zero: never.
	Deadline time.Duration
	// Pod and Namespace are named in what the latch says. They may be empty.
	Pod, Namespace string
	// Changes tells when to read the key. Nil: nobody does, and it is read more often.
	Changes <-chan struct{}
	// Out is where it says what it does.
	Out io.Writer
}

// Run waits until the latch is open. Its only error is ErrStopped, when the context has ended before.
func (o *Options) Run(ctx context.Context) error {
	l := &latch{Options: o, started: time.Now(), made: writtenAt(o.SandboxFile), remindAfter: reminderPeriod, buffer: make([]byte, maxFile)}
	boot, _ := readShort(o.BootFile, l.buffer) // without one, boots are not compared
	l.boot = strings.TrimSpace(boot)
	say(l.Out, l.purpose())
	if _, err := os.Stat(l.Dir); err != nil {
		l.remark("the volume with the key is missing: " + err.Error())
	}
	return l.wait(ctx)
}

// latch is one that waits.
type latch struct {
	*Options
	boot    string
	started time.Time
	// made is when the sandbox was; zero if that is not known.
	made time.Time
	// value is what was read last, and since is when it was first.
	value string
	since time.Time
	// remindAfter is how long it has waited when it says so next.
	remindAfter time.Duration
	// remarked is what it remarked last.
	remarked string
	// buffer is for reading: who reads again and again should leave nothing to collect.
	buffer []byte
}

func (l *latch) wait(ctx context.Context) error {
	poll := time.NewTicker(l.period())
	defer poll.Stop()
	for {
		if ctx.Err() != nil { // before anything else: a pod that is ended is not to start
			return ErrStopped
		}
		if why := l.look(); why != "" {
			say(l.Out, "open after "+l.waited().Round(pollPeriod).String()+": "+why)
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

// period is how often the key is read, changes aside.
func (l *latch) period() time.Duration {
	if l.Changes == nil {
		return pollPeriod
	}
	return watchedPeriod
}

func (l *latch) waited() time.Duration { return time.Since(l.started) }

// look is why the latch is open; empty if it is not.
func (l *latch) look() string {
	if why := l.tryKey(); why != "" {
		return why
	}
	if l.Deadline > 0 && l.waited() >= l.Deadline {
		return "the deadline of " + l.Deadline.String() + " is over, and nobody has said that the pod's network is ready"
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
			l.remark("the key cannot be read: " + err.Error())
		}
		return ""
	}
	key, ok := latchkey.Parse(value)
	switch {
	case ok && key.Opens(l.PodIP, l.boot) && l.believes(key):
		return l.openWords(key)
	case ok && key.Open:
		l.remark(l.foreignWords(key.Sandbox))
	case !ok && strings.TrimSpace(value) != "":
		l.remark(noKeyWords(value))
	}
	return ""
}

// believes says whether a key with the address and the boot of this sandbox is for it. Where a pod keeps
// its address, one that looks older may be of an earlier sandbox: its agent is given the time to close
// it. It is not refused for good, or a clock that was set would keep the pod for ever.
func (l *latch) believes(key latchkey.Key) bool {
	return !key.Sandbox.Precedes(l.made) || time.Since(l.since) >= doubtPeriod
}

// remind says, now and then, that the latch waits.
func (l *latch) remind() {
	if waited := l.waited(); waited >= l.remindAfter {
		l.remindAfter = waited + reminderPeriod
		say(l.Out, "still waiting after "+waited.Round(time.Second).String()+"; to see for what: "+l.question())
	}
}

// remark says what is wrong, once.
func (l *latch) remark(text string) {
	if text != l.remarked {
		l.remarked = text
		say(l.Out, text)
	}
}
