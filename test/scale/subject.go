package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

// subject is a controller that is measured: a command line in which {kubeconfig}, {pprof} and
// {metrics} stand for a file and for addresses. The floor knows no rules: of it, {taints} stands
// for keys and {wait} for whether the rule is still to come.
type subject struct {
	name    string
	command []string
}

// user is who the subject is to the API server: a service account, as any controller.
func (s subject) user() string {
	if s.name == report.Ours {
		return admission.ManagerUser
	}
	return "system:serviceaccount:" + testenv.ManagerNamespace + ":" + s.name
}

// parseSubject reads NAME=COMMAND LINE.
func parseSubject(text string) (subject, error) {
	name, command, found := strings.Cut(text, "=")
	if !found || name == "" || strings.TrimSpace(command) == "" || name == report.Nobody || name == report.Floor {
		return subject{}, fmt.Errorf("--controller is %q, must be NAME=COMMAND, e.g. --controller 'mine=/path/to/controller --kubeconfig {kubeconfig}'", text)
	}
	return subject{name: name, command: strings.Fields(command)}, nil
}

func ours(manager string) subject {
	return subject{name: report.Ours, command: []string{
		manager, "--kubeconfig={kubeconfig}", "--leader-elect", "--leader-election-namespace=" + testenv.ManagerNamespace,
		"--health-probe-bind-address=0", "--metrics-bind-address={metrics}", "--pprof-bind-address={pprof}",
	}}
}

func floorSubject(self string) subject {
	return subject{name: report.Floor, command: []string{self, "floor", "--kubeconfig={kubeconfig}", "--taints={taints}", "--wait={wait}"}}
}

// process is a subject that runs.
type process struct {
	cmd     *exec.Cmd
	log     string
	pprof   string
	started time.Time
	done    chan struct{}
}

// launch starts a subject in a world that has rules, or will have.
func (w *world) launch(s subject, ruled bool) (*process, error) {
	ports, err := controlplane.FreePorts(2)
	if err != nil {
		return nil, err
	}
	address := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	p := &process{done: make(chan struct{}), pprof: address(ports[0]), log: filepath.Join(w.dir, fmt.Sprintf("%s-%d.log", s.name, ports[0]))}
	fill := strings.NewReplacer("{kubeconfig}", w.kubeconfig, "{pprof}", p.pprof, "{metrics}", address(ports[1]),
		"{taints}", strings.Join(w.witness.taints, ","), "{wait}", strconv.FormatBool(!ruled))
	var args []string
	for _, arg := range s.command {
		args = append(args, fill.Replace(arg))
	}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the child has its own copy
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.started = time.Now()
	if err := controlplane.StartChild(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

// alive is an error if the process has ended, with its last words.
func (p *process) alive() error {
	select {
	case <-p.done:
		const size = 2000
		data, _ := os.ReadFile(p.log)
		return fmt.Errorf("the controller has ended with %v:\n%s", p.cmd.ProcessState, data[max(0, len(data)-size):])
	default:
		return nil
	}
}

// end asks the process to stop, as a rollout does, and returns when it is gone.
func (p *process) end() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended before
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

func (p *process) usage() (testenv.Usage, error) {
	if p == nil {
		return testenv.Usage{}, nil
	}
	return testenv.UsageOf(p.cmd.Process.Pid)
}

var heapInUse = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap is the live heap in bytes, after a collection; 0 if the process does not tell.
func (p *process) heap(ctx context.Context) int64 {
	var bytes int64
	for range 2 { // what finalizers and pools held on to is gone after the second
		bytes = 0
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.pprof+"/debug/pprof/heap?gc=1&debug=1", nil)
		if err != nil {
			return 0
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // only read
		if err != nil {
			return 0
		}
		if found := heapInUse.FindSubmatch(body); found != nil {
			bytes, _ = strconv.ParseInt(string(found[1]), 10, 64)
		}
	}
	return bytes
}
