package probe_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/podgate/probe"
)

// host is a directory with files of a host.
type host struct {
	t    testing.TB
	root string
}

func newHost(t testing.TB) host { return host{t, t.TempDir()} }

// write writes a file of the host.
func (h host) write(path, content string) {
	h.t.Helper()
	h.mkdir(filepath.Dir(path))
	if err := os.WriteFile(filepath.Join(h.root, path), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// link makes a link on the host, to what it names as the host does.
func (h host) link(path, to string) {
	h.t.Helper()
	h.mkdir(filepath.Dir(path))
	if err := os.Symlink(to, filepath.Join(h.root, path)); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) mkdir(path string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Join(h.root, path), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// ask asks for a file of the host.
func (h host) ask(t testing.TB, path, contains string) podrule.Answer {
	t.Helper()
	return asked(t, &probe.Asker{Root: h.root}, podrule.Probe{Kind: podrule.File, Path: path, Contains: contains})
}

func TestFileProbeChecksExistenceAndContent(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	host.write("/run/agent/web", `{"ifaceName":"cali1","ipv4Nets":["10.0.0.7/32"]}`)
	host.write("/run/agent/empty", "")
	host.link("/run/agent/link", "web")
	host.link("/run/agent/dangling", "none")
	host.link("/run/agent/loop", "loop")
	if err := syscall.Mkfifo(filepath.Join(host.root, "run/agent/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path, contains string
		want           podrule.Answer
	}{
		"one that is there":             {path: "/run/agent/web", want: yes},
		"one that is empty":             {path: "/run/agent/empty", want: yes},
		"one that contains it":          {path: "/run/agent/web", contains: "10.0.0.7/32", want: yes},
		"one that contains another":     {path: "/run/agent/web", contains: "10.0.0.8/32", want: no("the file does not contain 10.0.0.8/32")},
		"one that contains nothing":     {path: "/run/agent/empty", contains: "10.0.0.7/32", want: no("the file does not contain 10.0.0.7/32")},
		"one that is missing":           {path: "/run/agent/none", want: no("no such file")},
		"one that is not mounted":       {path: "/run/other/none", want: no("no such directory; check podgate.hostPaths")},
		"a link to one":                 {path: "/run/agent/link", contains: "10.0.0.7/32", want: yes},
		"a link to nothing":             {path: "/run/agent/dangling", want: no("no such file")},
		"a link to itself":              {path: "/run/agent/loop", want: no("the file cannot be read: too many levels of symbolic links")},
		"one below a file":              {path: "/run/agent/web/x", want: no("the file cannot be read: not a directory")},
		"the directory":                 {path: "/run/agent/", want: no("not a regular file")},
		"the directory, for its text":   {path: "/run/agent/", contains: "web", want: no("not a regular file")},
		"a FIFO without a writer":       {path: "/run/agent/fifo", want: no("not a regular file")},
		"no path":                       {path: "", want: no("no such file")},
		"a text that is too long to be": {path: "/run/agent/web", contains: strings.Repeat("x", 200), want: no("the file does not contain " + strings.Repeat("x", 125) + "…")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, host.ask(t, test.path, test.contains), test.want)
		})
	}
}

func TestASocketIsNoFile(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("", "host") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	listener, err := net.Listen("unix", filepath.Join(root, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	expect(t, host{t, root}.ask(t, "/agent", ""), no("not a regular file"))
}

func TestADeviceIsNoFile(t *testing.T) {
	t.Parallel()
	expect(t, asked(t, &probe.Asker{}, podrule.Probe{Kind: podrule.File, Path: "/dev/zero", Contains: "x"}), no("not a regular file"))
}

func TestUnreadableFileReportsTheReason(t *testing.T) {
	t.Parallel()
	denied := &fs.PathError{Op: "open", Path: "/run/agent/web", Err: syscall.EACCES}
	if got, want := probe.ExplainFile(t.TempDir(), "/run/agent/web", denied), "permission denied; podgate must be able to read the file"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs a file that also root cannot read")
	}
	expect(t, asked(t, &probe.Asker{}, podrule.Probe{Kind: podrule.File, Path: "/proc/self/mem", Contains: "x"}), no("the file cannot be read: input/output error"))
}

// A missing root is like a root without mounts.
func TestARootMayBeMissing(t *testing.T) {
	t.Parallel()
	expect(t, host{t, filepath.Join(t.TempDir(), "none")}.ask(t, "/run/agent/web", ""), no("no such directory; check podgate.hostPaths"))
}

// Only 64 KiB are read, and a value does not end at that limit.
func TestOnlyTheBeginningOfAFileIsRead(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	host := newHost(t)
	for name, test := range map[string]struct {
		content string
		want    podrule.Answer
	}{
		"at its end":            {strings.Repeat(" ", most-2) + "ok", yes},
		"at its end, of more":   {strings.Repeat(" ", most-2) + "ok and more", yes},
		"across its end":        {strings.Repeat(" ", most-1) + "ok", no("the first 64 KiB of the file do not contain ok")},
		"beyond":                {strings.Repeat(" ", most+1) + "ok", no("the first 64 KiB of the file do not contain ok")},
		"the beginning of more": {strings.Repeat(" ", most-2) + "oks", no("the first 64 KiB of the file do not contain ok")},
		"and half of a letter":  {strings.Repeat(" ", most-2) + "okä", no("the first 64 KiB of the file do not contain ok")},
	} {
		host.write("/"+name, test.content)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, host.ask(t, "/"+name, "ok"), test.want)
		})
	}
}

// Without openat2, only relative links inside the root work.
func TestAFileIsOpenedBelowTheRoot(t *testing.T) {
	t.Parallel()
	outside, host := newHost(t), newHost(t)
	outside.write("/secret", "")
	host.write("/run/agent/web", "")
	host.link("/run/agent/link", "../agent/web")
	host.link("/run/agent/out", filepath.Join(outside.root, "secret"))
	for path, opens := range map[string]bool{
		"/run/agent/web": true, "/run/agent/link": true, "/": true,
		"/run/agent/out": false, "/run/agent/none": false, "/../secret": false,
	} {
		file, err := probe.OpenWithin(host.root, path)
		if (err == nil) != opens {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			_ = file.Close()
		}
	}
}

// A file system that does not respond blocks neither the agent nor more and more goroutines.
func TestFileThatHangsIsReadOnlyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hangs = "the file system does not respond"
		var begun atomic.Int32
		back := make(chan struct{})
		asker := &probe.Asker{}
		probe.SetCheckFile(asker, func(_ string, p podrule.Probe) podrule.Answer {
			if p.Path != "/good" {
				begun.Add(1)
				<-back
			}
			return yes
		})
		ask := func(path string) podrule.Answer {
			return asker.Ask(t.Context(), podrule.Probe{Kind: podrule.File, Path: path})
		}
		expect(t, ask("/dead"), no(hangs))
		expect(t, ask("/dead"), no(hangs))
		if begun.Load() != 1 {
			t.Errorf("%d checks were started", begun.Load())
		}
		expect(t, ask("/good"), yes)
		for i := range probe.MaxPending {
			expect(t, ask("/dead/"+strconv.Itoa(i)), no(hangs))
		}
		if begun.Load() != probe.MaxPending {
			t.Errorf("%d checks have not ended", begun.Load())
		}
		close(back)
		synctest.Wait()
		expect(t, ask("/dead"), yes)
	})
}
