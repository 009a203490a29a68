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

// A latch that is told of changes looks at once when there is one, and else seldom: each look wakes a
// process in every pod that waits.
func TestALatchThatIsToldOfChangesLooksSeldom(t *testing.T) {
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
		p.said("open after 400ms: the key is for this sandbox")
	})
	play(t, func(p *trial) {
		p.Changes = make(chan struct{})
		p.start()
		p.key(openKey) // and nobody tells
		p.after(900 * time.Millisecond)
		p.waits()
		p.after(100 * time.Millisecond)
		p.ends(nil)
	})
}

// What the kubelet does to the volume is a change.
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
	for range 3 {
		p.key(openKey)
		select {
		case <-changes:
		case <-time.After(time.Minute):
			t.Fatal("nobody tells of a key")
		}
	}
	must(t, os.WriteFile(filepath.Join(p.Dir, "other"), nil, 0o600))
	if latch.Watch(filepath.Join(p.Dir, "absent")) != nil {
		t.Error("a directory that is not there is watched")
	}
}
