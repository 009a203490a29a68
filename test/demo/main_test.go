// Package demo tests make demo with the built program.
package demo_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

var binary string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // tests report failures
	klog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "readygate-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's own directory for such things
	defer testenv.CleanUp()
	binary = filepath.Join(dir, "demo")
	build := exec.Command("go", "build", "-o", binary, "./hack/demo")
	build.Dir, build.Stderr = testenv.Root(), os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	return m.Run()
}

// performance is a running demo. Its temporary files are in a directory of the test.
type performance struct {
	t    *testing.T
	cmd  *exec.Cmd
	temp string
	done chan struct{}

	mu    sync.Mutex
	out   bytes.Buffer
	waits map[string]chan struct{}
}

// start plays a scenario once. KUBECONFIG names a file that does not exist: the demo must ignore it.
func start(t *testing.T, scenario string) *performance {
	t.Helper()
	p := &performance{t: t, temp: t.TempDir(), done: make(chan struct{}), waits: map[string]chan struct{}{}}
	p.cmd = exec.Command(binary, testenv.Binaries())
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = testenv.Root(), p, p
	p.cmd.Env = append(os.Environ(), "SCENARIO="+scenario, "ONCE=1", "TMPDIR="+p.temp, "KUBECONFIG="+filepath.Join(p.temp, "absent"))
	if err := controlplane.StartChild(p.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, unless the test has failed
		<-p.done
		if t.Failed() {
			t.Logf("the demo printed:\n%s", p.text())
		}
	})
	return p
}

// Write records the output of the demo.
func (p *performance) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(data)
	for text, waits := range p.waits {
		if strings.Contains(p.out.String(), text) {
			close(waits)
			delete(p.waits, text)
		}
	}
	return len(data), nil
}

func (p *performance) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits until the demo has printed a text.
func (p *performance) says(text string) {
	p.t.Helper()
	p.mu.Lock()
	waits := make(chan struct{})
	if strings.Contains(p.out.String(), text) {
		close(waits)
	} else {
		p.waits[text] = waits
	}
	p.mu.Unlock()
	select {
	case <-waits:
	case <-p.done:
		if !strings.Contains(p.text(), text) {
			p.t.Fatalf("the demo ended without printing %q", text)
		}
	}
}

// ends waits until the demo has ended, and checks its exit code, its output and that it left nothing behind.
func (p *performance) ends(code int, said ...string) {
	p.t.Helper()
	<-p.done
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range said {
		if !strings.Contains(p.text(), text) {
			p.t.Errorf("the output lacks %q", text)
		}
	}
	p.leavesNothing()
}

// interrupt sends the signal of Ctrl-C.
func (p *performance) interrupt() { _ = p.cmd.Process.Signal(syscall.SIGINT) }

// leavesNothing fails if a temporary file, or a process that was started with one, is left.
func (p *performance) leavesNothing() {
	p.t.Helper()
	left, err := os.ReadDir(p.temp)
	if err != nil || len(left) > 0 {
		p.t.Errorf("temporary files are left: %v %v", left, err)
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // where there is no /proc, there is nothing to look at
	for _, command := range commands {
		line, err := os.ReadFile(command)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			p.t.Error(err)
		}
		if strings.Contains(string(line), p.temp) {
			p.t.Errorf("a process is left: %s", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
