package cni_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// hostEnv is set in processes on the scratch host.
const hostEnv = "READYGATE_TEST_HOST"

// onScratchHost runs the tests in their own network and mount namespaces if possible:
// a failed test leaves nothing on the machine.
func onScratchHost(m *testing.M) int {
	if os.Getenv(hostEnv) != "" || os.Geteuid() != 0 {
		return m.Run()
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), hostEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if errors.Is(err, syscall.EPERM) {
		return m.Run()
	}
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "starting the tests on a scratch host:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// runCanary runs one canary, and prints its start and its result.
func runCanary(text string) int {
	var c cni.Canary
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Println(err)
		return 1
	}
	_ = os.Unsetenv(canaryEnv) // the plugin is this binary too
	fmt.Println("begins")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// process returns a process that runs the canary, not started yet.
func process(t *testing.T, c *cni.Canary) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), canaryEnv+"="+string(text))
	return cmd
}

// network is a network of the plugins bridge and host-local on the scratch host.
type network struct {
	cni.Plugins
	dataDir string
}

const gateway = "10.77.0.1"

// bridge is the configuration of the plugin; edit may change it.
func (n network) bridge(edit ...func(bridge, ipam map[string]any)) map[string]any {
	ipam := map[string]any{
		"type": "host-local", "dataDir": n.dataDir, "routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
		"ranges": []any{[]any{map[string]any{"subnet": "10.77.0.0/24"}}},
	}
	conf := map[string]any{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": ipam}
	for _, e := range edit {
		e(conf, ipam)
	}
	return conf
}

// newNetwork needs root, and the plugins from source.
func newNetwork(t *testing.T) network {
	t.Helper()
	if testing.Short() {
		t.Skip("needs root and the CNI plugins: make test-all runs it")
	}
	if os.Getenv(hostEnv) == "" {
		t.Skip("needs root with CAP_SYS_ADMIN, to make network namespaces")
	}
	bin, err := filepath.Abs("../../../bin/node/cni")
	if err == nil {
		_, err = os.Stat(filepath.Join(bin, "bridge"))
	}
	if err != nil {
		t.Skipf("the CNI plugins are not there: run make cni (%v)", err)
	}
	n := network{Plugins: plugins(t), dataDir: t.TempDir()}
	n.BinDirs = append(n.BinDirs, bin)
	return n
}

// canary returns a canary for a network of these plugins.
func (n network) canary(t *testing.T, plugins ...any) *cni.Canary {
	t.Helper()
	write(t, n.ConfDir, "10.conflist", list(t, "1.0.0", plugins...))
	return &cni.Canary{Plugins: n.Plugins, StateDir: t.TempDir()}
}

// nothingLeft checks everything that a canary uses: mounts, interfaces, addresses, files, processes.
func (n network) nothingLeft(t *testing.T, c *cni.Canary) {
	t.Helper()
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(c.StateDir)) {
		t.Errorf("a namespace is still mounted (%v):\n%s", err, mounts)
	}
	for pattern, what := range map[string]string{
		c.StateDir + "/*.json*":          "state file",
		c.StateDir + "/netns/*":          "namespace file",
		c.StateDir + "/cache/results/*":  "cached result",
		n.dataDir + "/pods/[0-9]*.*.*.*": "reserved address",
	} {
		if files, _ := filepath.Glob(pattern); len(files) > 0 {
			t.Errorf("%s left: %v", what, files)
		}
	}
	eventually(t, "a veth is left", func() bool { // the kernel takes namespaces apart in its own time
		nics, err := net.Interfaces()
		for _, nic := range nics {
			if strings.HasPrefix(nic.Name, "veth") {
				return false
			}
		}
		return err == nil
	})
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		if text, _ := os.ReadFile(file); bytes.Contains(text, []byte("CNI_COMMAND=")) && bytes.Contains(text, []byte(n.BinDirs[0])) {
			t.Errorf("a plugin is still running: %s", file)
		}
	}
}

func eventually(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error(otherwise)
			return
		}
	}
}

// dies waits until the process whose PID is in the file has ended.
func dies(t *testing.T, file string) {
	t.Helper()
	pid := pidIn(t, file)
	eventually(t, "the child still runs", func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
}

// kill kills the process whose PID is in the file.
func kill(t *testing.T, file string) {
	t.Helper()
	if err := unix.Kill(pidIn(t, file), unix.SIGKILL); err != nil {
		t.Error(err)
	}
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
