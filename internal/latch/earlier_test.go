package latch_test

import (
	"path/filepath"
	"testing"
	"time"
)

// The log lines for openKey in a sandbox that was created a minute after it.
const (
	looksOlder = "the key looks older than this sandbox: it is from 2026-11-16T10:00:00Z, and the sandbox was created at 2026-11-16T10:01:00Z. " +
		"It opens the latch if it is not closed or replaced for 10s"
	stoodFor = "the key looks older than this sandbox, and was not closed or replaced for 10s"
)

// earlier is a scenario of a latch with a key that looks older than its sandbox, after this time.
func earlier(t *testing.T, after time.Duration, scenario func(p *trial)) {
	t.Helper()
	play(t, func(p *trial) {
		p.made(keyTime.Add(time.Minute))
		p.key(openKey)
		p.start()
		p.after(after)
		p.waits()
		p.wantLog(looksOlder)
		scenario(p)
	})
}

// A clock that was set, or a kubelet that has not reported a new time, holds no pod forever.
func TestAKeyThatLooksOlderThanItsSandboxOpensAfterAWhile(t *testing.T) {
	t.Parallel()
	earlier(t, 9900*time.Millisecond, func(p *trial) {
		p.after(100 * time.Millisecond)
		p.ends(nil)
		p.wantLog(looksOlder, "open after 10s: "+stoodFor)
	})
}

// A pod that keeps its address has the key of its earlier sandbox until the agent closes it.
func TestAKeyOfAnEarlierSandboxWithTheSameAddressOpensNothing(t *testing.T) {
	t.Parallel()
	t.Run("it is closed", func(t *testing.T) {
		t.Parallel()
		earlier(t, 9*time.Second, func(p *trial) {
			p.key("closed 10.0.0.7 b1 2026-11-16T10:01:00Z again")
			p.after(20 * time.Second)
			p.waits()
			p.wantLog(looksOlder)
		})
	})
	t.Run("it is removed", func(t *testing.T) {
		t.Parallel()
		earlier(t, 9*time.Second, func(p *trial) {
			p.key("")
			p.after(20 * time.Second)
			p.waits()
		})
	})
	t.Run("it is closed, and is back", func(t *testing.T) {
		t.Parallel()
		earlier(t, 9*time.Second, func(p *trial) {
			p.key("closed - b1 - again")
			p.after(time.Second)
			p.key(openKey)
			p.after(9900 * time.Millisecond)
			p.waits()
			p.after(200 * time.Millisecond)
			p.ends(nil)
			p.wantLog(looksOlder, "open after 20.1s: "+stoodFor)
		})
	})
	t.Run("another old one takes its place", func(t *testing.T) {
		t.Parallel()
		earlier(t, 9*time.Second, func(p *trial) {
			p.key(openKey + " again")
			p.after(9900 * time.Millisecond)
			p.waits()
			p.after(200 * time.Millisecond)
			p.ends(nil)
		})
	})
	t.Run("it is written again, and is the same key", func(t *testing.T) {
		t.Parallel()
		earlier(t, 9*time.Second, func(p *trial) {
			p.key(openKey + " ")
			p.after(1100 * time.Millisecond)
			p.ends(nil)
		})
	})
	t.Run("the one for this sandbox takes its place", func(t *testing.T) {
		t.Parallel()
		earlier(t, time.Second, func(p *trial) {
			p.key("open 10.0.0.7 b1 2026-11-16T10:01:00Z again")
			p.after(100 * time.Millisecond)
			p.ends(nil)
			p.wantLog(looksOlder, "open after 1.1s: the key is for this sandbox")
		})
	})
	t.Run("one for every sandbox does", func(t *testing.T) {
		t.Parallel()
		earlier(t, time.Second, func(p *trial) {
			p.key("always RuleDeleted")
			p.after(100 * time.Millisecond)
			p.ends(nil)
		})
	})
	t.Run("the deadline is over", func(t *testing.T) {
		t.Parallel()
		play(t, func(p *trial) {
			p.Deadline = time.Second
			p.made(keyTime.Add(time.Minute))
			p.key(openKey)
			p.start()
			p.after(time.Second)
			p.ends(nil)
		})
	})
}

// Only a key that is older for sure is doubted.
func TestAKeyThatIsNotOlderThanItsSandboxOpensAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		made   func(p *trial)
		key    string
		doubts bool
	}{
		"made before the key":                   {made: madeAt(-time.Second), key: openKey},
		"made within the second of the key":     {made: madeAt(time.Second - 1), key: openKey},
		"made when that second ends":            {made: madeAt(time.Second), key: openKey},
		"made after it":                         {made: madeAt(time.Second + 1), key: openKey, doubts: true},
		"a key without a time":                  {made: madeAt(time.Hour), key: "open 10.0.0.7 b1 -"},
		"a key for every sandbox":               {made: madeAt(time.Hour), key: "always RuleDeleted"},
		"no file":                               {made: func(*trial) {}, key: openKey},
		"a file that is not there":              {made: func(p *trial) { p.SandboxFile = filepath.Join(p.Dir, "absent") }, key: openKey},
		"a time that is written in another way": {made: madeAt(time.Second), key: "open 10.0.0.7 b1 2026-11-16T12:00:00+02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(p *trial) {
				tc.made(p)
				p.key(tc.key)
				p.start()
				if tc.doubts {
					p.waits()
				} else {
					p.ends(nil)
				}
			})
		})
	}
}

// madeAt creates the sandbox this long after the time of openKey.
func madeAt(after time.Duration) func(p *trial) {
	return func(p *trial) { p.made(keyTime.Add(after)) }
}

// A key of another boot, or of another address, is of another sandbox whatever its time.
func TestAKeyOfAnotherSandboxIsNeverAccepted(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"open 10.0.0.8 b1 2026-11-16T10:00:00Z", "open 10.0.0.7 b0 2026-11-16T10:00:00Z"} {
		play(t, func(p *trial) {
			p.made(keyTime.Add(time.Minute))
			p.key(key)
			p.start()
			p.after(20 * time.Second)
			p.waits()
		})
	}
}
