package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

// start starts the subject of the world.
func (w *world) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := []string{self, "floor", "--kubeconfig", w.kubeconfig, "--taints", strings.Join(w.recorder.taints, ",")}
	if w.subject == report.Ours {
		command = []string{
			w.manager, "--kubeconfig", w.kubeconfig, "--leader-elect", "--leader-election-namespace", testenv.ManagerNamespace,
			"--health-probe-bind-address=0", "--metrics-bind-address=0",
		}
	}
	w.process, err = controlplane.StartProcess(exec.Command(command[0], command[1:]...), filepath.Join(w.dir, "subject.log"))
	return err
}

// stop stops the subject by SIGTERM, as a kubelet does, and kills it after 20 s.
func (w *world) stop() {
	timeout := time.AfterFunc(20*time.Second, func() { w.process.Signal(os.Kill) })
	defer timeout.Stop()
	w.process.Terminate()
}
