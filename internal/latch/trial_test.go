package latch_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/latch"
)

// The sandbox that latches of the tests are in.
const (
	address = "10.0.0.7"
	boot    = "b1"
	openKey = "open 10.0.0.7 b1 2026-11-16T10:00:00Z"
)

// keyTime is the time in openKey.
var keyTime = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)

// trial is a latch on files of its own. Time passes only while everybody waits.
type trial struct {
	latch.Options
	t       *testing.T
	out     output
	ended   chan error
	changes int
}

// output is what a latch has logged. A latch may still log while it is read: that all goroutines wait does not mean that
// they have finished.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// play runs a scenario of one latch, and ends what is left of it.
func play(t *testing.T, scenario func(p *trial)) {
	t.Helper()
	dir, bootFile := t.TempDir(), filepath.Join(t.TempDir(), "boot_id")
	must(t, os.WriteFile(bootFile, []byte(boot+"\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		p := &trial{t: t, ended: make(chan error, 1), Options: latch.Options{Dir: dir, PodIP: address, BootFile: bootFile}}
		p.Out = &p.out
		scenario(p)
	})
}

// made creates the sandbox at this time.
func (p *trial) made(at time.Time) {
	p.t.Helper()
	p.SandboxFile = filepath.Join(p.t.TempDir(), "hostname")
	must(p.t, os.WriteFile(p.SandboxFile, []byte("web-1\n"), 0o600))
	must(p.t, os.Chtimes(p.SandboxFile, at, at))
}

// start starts the latch, which reads the key at once.
func (p *trial) start() {
	go func() { p.ended <- p.Run(p.t.Context()) }()
	synctest.Wait()
}

// after advances the clock by this duration.
func (p *trial) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// key changes the volume as the kubelet does: all files are in a directory that a link names, and
// the link is replaced.
func (p *trial) key(value string) {
	p.t.Helper()
	p.changes++
	in := func(name string) string { return filepath.Join(p.Dir, name) }
	next := "..2026_11_16_10_00_00." + strconv.Itoa(p.changes)
	must(p.t, os.Mkdir(in(next), 0o700))
	must(p.t, os.WriteFile(filepath.Join(in(next), latchkey.File), []byte(value), 0o600))
	must(p.t, os.Symlink(next, in("..data_tmp")))
	before, err := os.Readlink(in("..data"))
	must(p.t, os.Rename(in("..data_tmp"), in("..data")))
	if err != nil { // there was none
		must(p.t, os.Symlink(filepath.Join("..data", latchkey.File), in(latchkey.File)))
		return
	}
	must(p.t, os.RemoveAll(in(before)))
}

// waits checks that the latch has not ended.
func (p *trial) waits() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		p.t.Fatalf("it ended with %v, and logged\n%s", err, &p.out)
	default:
	}
}

// ends checks that the latch has ended, and how.
func (p *trial) ends(want error) {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if !errors.Is(err, want) {
			p.t.Fatalf("it ended with %v, want %v, and logged\n%s", err, want, &p.out)
		}
	default:
		p.t.Fatalf("it waits, and logged\n%s", &p.out)
	}
}

// wantLog compares the lines that the latch has logged since it began to wait.
func (p *trial) wantLog(want ...string) {
	p.t.Helper()
	_, rest, _ := strings.Cut(p.out.String(), "\n")
	var all strings.Builder
	for _, line := range want {
		all.WriteString("readygate-latch: " + line + "\n")
	}
	if rest != all.String() {
		p.t.Errorf("it logged\n%swant\n%s", rest, &all)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
