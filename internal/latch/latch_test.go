package latch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/latch"
)

func TestALatchWaitsForItsKey(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.start()
		p.after(time.Second)
		p.waits()
		p.key(openKey)
		p.after(100 * time.Millisecond)
		p.ends(nil)
		p.wantLog("open after 1.1s: the key is for this sandbox")
	})
}

// The kubelet replaces a directory, and removes the one before.
func TestAKeyIsSeenWhenTheKubeletReplacesIt(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.key("")
		p.start()
		p.waits()
		for _, value := range []string{"closed - b1 -", "closed 10.0.0.7 b1 2026-11-16T10:00:00Z"} {
			p.key(value)
			p.after(time.Second)
			p.waits()
		}
		p.key(openKey)
		p.after(100 * time.Millisecond)
		p.ends(nil)
		p.wantLog("open after 2.1s: the key is for this sandbox")
		if link, err := os.Readlink(filepath.Join(p.Dir, latchkey.File)); err != nil || link != filepath.Join("..data", latchkey.File) {
			p.t.Errorf("the key is a link to %q, %v: that is not how the kubelet does it", link, err)
		}
	})
}

// A key that is not for this sandbox does not open the latch, and the latch logs why.
func TestWhatOpensALatch(t *testing.T) {
	t.Parallel()
	const (
		notHere      = "the key is for another sandbox: "
		nowhere      = ", and READYGATE_POD_IP is empty: the latch cannot compare them and stays closed"
		annotationIs = "annotation readygate.dev/latch is "
		isNoKey      = ", which is not a valid key: the latch stays closed"
		openHere     = "open after 0s: the key is for this sandbox"
	)
	for name, tc := range map[string]struct {
		key        string
		noIP, kept bool // the address is not known; the latch stays as it is
		noBoot     bool
		log        string
	}{
		"a key for this sandbox":             {key: openKey, log: openHere},
		"a key for its second sandbox":       {key: openKey + " again", log: openHere},
		"a key that does not know the boot":  {key: "open 10.0.0.7 - -", log: openHere},
		"a key, where the boot is not known": {key: openKey, noBoot: true, log: openHere},
		"a key for every sandbox":            {key: "always RuleDeleted", log: `open after 0s: the key is for every sandbox, with reason "RuleDeleted"`},
		"one without an address":             {key: "always AgentGone", noIP: true, log: `open after 0s: the key is for every sandbox, with reason "AgentGone"`},
		"a reason with a terminal escape":    {key: "always \x1b[2J", log: `open after 0s: the key is for every sandbox, with reason "\x1b[2J"`},

		"no key":                        {kept: true},
		"a closed key":                  {key: "closed 10.0.0.7 b1 2026-11-16T10:00:00Z", kept: true},
		"a closed key of another":       {key: "closed 10.0.0.8 b0 2026-11-16T10:00:00Z", kept: true},
		"a key of another address":      {key: "open 10.0.0.8 b1 -", kept: true, log: notHere + `its address is "10.0.0.8", this sandbox has "10.0.0.7"`},
		"a key of no address":           {key: "open - b1 -", kept: true, log: notHere + `its address is "", this sandbox has "10.0.0.7"`},
		"a key of another boot":         {key: "open 10.0.0.7 b0 -", kept: true, log: notHere + `its boot ID is "b0", the node has "b1"`},
		"a key, but no address":         {key: openKey, noIP: true, kept: true, log: `the key is for address "10.0.0.7"` + nowhere},
		"a key of no address, but none": {key: "open - b1 -", noIP: true, kept: true, log: `the key is for address ""` + nowhere},
		"another text":                  {key: "open\x1b[2J", kept: true, log: annotationIs + `"open\x1b[2J"` + isNoKey},
		"a longer text":                 {key: strings.Repeat("a", 65), kept: true, log: annotationIs + `"` + strings.Repeat("a", 64) + `..."` + isNoKey},
		"a key with more behind it":     {key: openKey + strings.Repeat(" ", 1024) + "no", kept: true, log: "the key cannot be read: DIR/key has 1024 bytes or more, must have fewer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(p *trial) {
				if tc.noIP {
					p.PodIP = ""
				}
				if tc.noBoot {
					p.BootFile = filepath.Join(p.Dir, "absent")
				}
				p.key(tc.key)
				p.start()
				if tc.kept {
					p.after(time.Second)
					p.waits()
				} else {
					p.ends(nil)
				}
				var want []string
				if tc.log != "" {
					want = append(want, strings.ReplaceAll(tc.log, "DIR", p.Dir))
				}
				p.wantLog(want...)
			})
		})
	}
}

// Where the key has been absent, or of another sandbox, the right one still opens.
func TestAKeyOfAnotherSandboxIsLoggedOnce(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.key("open 10.0.0.6 b1 -")
		p.start()
		p.after(time.Second)
		p.key("closed 10.0.0.7 b1 -")
		p.after(time.Second)
		p.key("open 10.0.0.6 b1 -")
		p.after(time.Second)
		p.waits()
		p.wantLog(`the key is for another sandbox: its address is "10.0.0.6", this sandbox has "10.0.0.7"`)
		p.key(openKey)
		p.after(time.Second)
		p.ends(nil)
	})
}

func TestADeadlineOpens(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.Deadline = 10 * time.Second
		p.key("closed 10.0.0.7 b1 -")
		p.start()
		p.after(9900 * time.Millisecond)
		p.waits()
		p.after(100 * time.Millisecond)
		p.ends(nil)
		p.wantLog("open after 10s: the deadline of 10s has passed, and no key has opened the latch")
	})
}

func TestADeadlineOpensWithoutAnAddress(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.Deadline, p.PodIP = time.Second, ""
		p.start()
		p.after(time.Second)
		p.ends(nil)
	})
}

// A key that comes with the deadline is why the latch is open.
func TestAKeyOpensBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.Deadline = time.Second
		p.start()
		p.after(950 * time.Millisecond)
		p.key(openKey)
		p.after(50 * time.Millisecond)
		p.ends(nil)
		p.wantLog("open after 1s: the key is for this sandbox")
	})
}

func TestAWaitingLatchLogsReminders(t *testing.T) {
	t.Parallel()
	for question, of := range map[string]latch.Options{
		"kubectl readiness why pod/web-1 --namespace=shop": {Pod: "web-1", Namespace: "shop"},
		"kubectl readiness why pod/web-1":                  {Pod: "web-1"},
		"kubectl readiness why pod/NAME":                   {},
	} {
		t.Run(question, func(t *testing.T) {
			t.Parallel()
			play(t, func(p *trial) {
				p.Pod, p.Namespace = of.Pod, of.Namespace
				p.start()
				p.after(29900 * time.Millisecond)
				p.wantLog()
				p.after(65 * time.Second)
				p.waits()
				p.wantLog(
					"still waiting after 30s; to see what it waits for, run: "+question,
					"still waiting after 1m0s; to see what it waits for, run: "+question,
					"still waiting after 1m30s; to see what it waits for, run: "+question,
				)
			})
		})
	}
}

func TestALatchFirstLogsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	const head = v1alpha1.LatchName + ": waiting for a key in annotation " + v1alpha1.LatchAnnotation + " of this pod"
	for want, of := range map[string]latch.Options{
		head + " for address 10.0.0.7": {PodIP: address},
		head + " for every sandbox: READYGATE_POD_IP is empty, so the latch cannot compare a key for one sandbox": {},
		head + " for address 10.0.0.7; the latch opens without a key after 1m0s":                                  {PodIP: address, Deadline: time.Minute},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			play(t, func(p *trial) {
				p.PodIP, p.Deadline = of.PodIP, of.Deadline
				p.start()
				if got := p.out.String(); got != want+"\n" {
					p.t.Errorf("it logged\n%swant\n%s", got, want)
				}
			})
		})
	}
}

// A pod that is ended must not take its latch for open.
func TestALatchThatIsStoppedIsNotOpen(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		ctx, stop := context.WithCancel(p.t.Context())
		go func() { p.ended <- p.Run(ctx) }()
		p.after(time.Second)
		p.waits()
		stop()
		synctest.Wait()
		p.ends(latch.ErrStopped)
		p.wantLog()
	})
	t.Run("not even with a key and past its deadline", func(t *testing.T) {
		play(t, func(p *trial) {
			p.Deadline = time.Nanosecond
			p.key(openKey)
			ctx, stop := context.WithCancel(p.t.Context())
			stop()
			if err := p.Run(ctx); !errors.Is(err, latch.ErrStopped) {
				p.t.Errorf("it ended with %v", err)
			}
		})
	})
}

func TestAMissingVolumeIsLoggedAndWaitedFor(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.Dir = filepath.Join(p.Dir, "absent")
		p.start()
		p.after(time.Second)
		p.waits()
		p.wantLog("the volume with the key is missing: stat " + p.Dir + ": no such file or directory")
		must(p.t, os.Mkdir(p.Dir, 0o700))
		p.key(openKey)
		p.after(time.Second)
		p.ends(nil)
	})
}

// What is in the way of the key may go.
func TestAnUnreadableKeyIsLoggedOnceAndWaitedFor(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		inTheWay := filepath.Join(p.Dir, latchkey.File)
		must(p.t, os.Mkdir(inTheWay, 0o700))
		p.start()
		p.after(time.Second)
		p.waits()
		p.wantLog("the key cannot be read: read " + inTheWay + ": is a directory")
		must(p.t, os.Remove(inTheWay))
		p.key(openKey)
		p.after(time.Second)
		p.ends(nil)
	})
}

// deaf takes nothing.
type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("no reader") }

func TestALatchOpensIfItsOutputFails(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		p.Out = deaf{}
		p.start()
		p.after(time.Minute)
		p.waits()
		p.key(openKey)
		p.after(time.Second)
		p.ends(nil)
	})
}
