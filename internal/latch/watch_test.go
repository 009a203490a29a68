package latch_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readygate/readygate/internal/latch"
)

// A latch with a watch reads the key at once after a change, and otherwise rarely: each read wakes a process in every pod
// that waits.
func TestALatchWithAWatchPollsSeldom(t *testing.T) {
	t.Parallel()
	play(t, func(p *trial) {
		changes := make(chan struct{})
		p.Changes = changes
		p.start()
		p.after(350 * time.Millisecond)
		p.key(openKey)
		changes <- struct{}{}
		synctest.Wait()
		p.ends(nil)
		p.wantLog("open after 400ms: the key is for this sandbox")
	})
	play(t, func(p *trial) {
		p.Changes = make(chan struct{})
		p.start()
		p.key(openKey) // without a signal
		p.after(900 * time.Millisecond)
		p.waits()
		p.after(100 * time.Millisecond)
		p.ends(nil)
	})
}

// That the kubelet puts the link to a new key in the place of the old one is a change. What it does
// before is none: a read at that time has the old key.
func TestWatch(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a latch runs on Linux")
	}
	p := &trial{t: t, Options: latch.Options{Dir: t.TempDir()}}
	p.key("")
	changes := latch.Watch(p.Dir)
	if changes == nil {
		t.Fatal("the directory is not watched")
	}
	in := func(name string) string { return filepath.Join(p.Dir, name) }
	for _, next := range []string{"..1", "..2", "..3"} {
		must(t, os.Mkdir(in(next), 0o700))
		must(t, os.Symlink(next, in("..data_tmp")))
		select {
		case <-changes:
			t.Fatal("there is no new key yet")
		case <-time.After(20 * time.Millisecond):
		}
		must(t, os.Rename(in("..data_tmp"), in("..data")))
		select {
		case <-changes:
		case <-time.After(time.Minute):
			t.Fatal("no signal for a key")
		}
	}
	if latch.Watch(filepath.Join(p.Dir, "absent")) != nil {
		t.Error("a directory that is not there is watched")
	}
}
