package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/readygate/readygate/internal/controlplane"
)

// Node is a machine. Its disk is a directory, and outlives its boots.
type Node struct {
	Name    string
	Address string

	lab         *Lab
	number      int
	dir         string
	kubeletArgs []string
	init        atomic.Pointer[controlplane.Process] // nil: switched off
}

// disks are the machine's own directories on the host, by their path on the machine.
var disks = []string{
	"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/lib/readygate",
	"/var/log/pods", "/var/log/containers", "/etc/cni/net.d", "/opt/cni/bin",
}

// Disk returns the path on the host of a path on the machine, e.g. /etc/cni/net.d.
func (n *Node) Disk(path string) string { return filepath.Join(n.dir, "disk", path) }

// install writes the files of a provider's image to the disk: the CNI project's plugins without a
// configuration, and the identity of the machine.
func (n *Node) install() error {
	for _, dir := range append(disks, "/log") {
		if err := os.MkdirAll(n.Disk(dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.CopyFS(n.Disk("/opt/cni/bin"), os.DirFS(asset("cni"))); err != nil {
		return err
	}
	for file, user := range map[string][]string{
		"kubelet":    {"system:node:" + n.Name, "system:nodes"},
		"kube-proxy": {"system:kube-proxy"},
	} {
		config, err := n.lab.ControlPlane.Config(user[0], user[1:]...)
		if err != nil {
			return err
		}
		if err := controlplane.WriteKubeconfig(n.Disk(file+".kubeconfig"), config); err != nil {
			return err
		}
	}
	return nil
}

// Boot starts the machine. It keeps its disk; its memory, network namespace and boot ID are new.
func (n *Node) Boot(t *testing.T) {
	t.Helper()
	if err := n.boot(); err != nil {
		t.Fatalf("booting %s: %v", n.Name, err)
	}
}

func (n *Node) boot() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close() //nolint:errcheck // the machine has its own copy
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partVar+"="+partNode)
	cmd.ExtraFiles = []*os.File{read}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	init, err := controlplane.StartProcess(cmd, n.Disk("/log/init.log"))
	if err != nil {
		return err
	}
	n.init.Store(init)

	// The machine waits for the pipe, until it has its cgroup and its network device.
	if err := joinCgroup(n.cgroup(), init.Pid()); err != nil {
		return err
	}
	if err := n.plugIn(init.Pid()); err != nil {
		return err
	}
	if err := json.NewEncoder(write).Encode(machine{
		Name: n.Name, Address: n.Address, Disk: n.Disk("/"), Assets: asset(""), CA: n.lab.CA(), KubeletArgs: n.kubeletArgs,
	}); err != nil {
		return err
	}
	return write.Close()
}

func (n *Node) cgroup() string {
	_, name := sandbox()
	return filepath.Join(name, fmt.Sprintf("%d-%s", n.number, n.Name))
}

// PowerOff kills all processes of the machine at once, without a shutdown.
func (n *Node) PowerOff(t *testing.T) {
	t.Helper()
	if err := n.powerOff(); err != nil {
		t.Fatalf("powering off %s: %v", n.Name, err)
	}
}

func (n *Node) powerOff() error {
	init := n.init.Load()
	if init == nil {
		return nil
	}
	if err := init.Kill(); err != nil { // and with it all of its pid namespace
		return err
	}
	n.init.Store(nil)
	n.unplug()
	return removeCgroups(n.cgroup())
}

// Reboot is PowerOff and Boot.
func (n *Node) Reboot(t *testing.T) {
	t.Helper()
	n.PowerOff(t)
	n.Boot(t)
}

// Reinstall wipes the disk of a machine that is off, and gives it a new identity and the same name.
func (n *Node) Reinstall(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(n.dir); err != nil {
		t.Fatal(err)
	}
	if err := n.install(); err != nil {
		t.Fatal(err)
	}
}

// Disconnect takes the machine's network device down.
func (n *Node) Disconnect(t *testing.T) { n.cable(t, "down") }

// Connect reverts Disconnect.
func (n *Node) Connect(t *testing.T) { n.cable(t, "up") }

func (n *Node) cable(t *testing.T, state string) {
	t.Helper()
	if err := ip("link set " + n.port() + " " + state); err != nil {
		t.Fatal(err)
	}
}

// BreakRoutes removes the routes to the pods of other nodes. The CNI's own processes do not notice it.
func (n *Node) BreakRoutes(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(n.Run(t, "ip", "route", "show", "dev", "flannel.1")) {
		n.Run(t, append([]string{"ip", "route", "del"}, strings.Fields(line)[0])...)
	}
}

// RemoveCNI removes the CNI configuration: the kubelet can no longer start pods.
func (n *Node) RemoveCNI(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob(n.Disk("/etc/cni/net.d/*"))
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// Run is Try that must succeed.
func (n *Node) Run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.Try(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try runs a program on the machine and returns its output.
func (n *Node) Try(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "nsenter",
		append([]string{"-t", strconv.Itoa(n.init.Load().Pid()), "-m", "-n", "-u", "-i", "-p", "--"}, args...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("on %s: %s: %w\n%s", n.Name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Cgroup returns the path on the host of a controller's file on the machine, e.g. memory, "/kubepods".
func (n *Node) Cgroup(controller, path string) string {
	if Unified() {
		controller = ""
	}
	return filepath.Join(cgroupRoot, controller, n.cgroup(), path)
}

// Works reports whether flannel has set up the network since the machine booted.
func (n *Node) Works() bool {
	init := n.init.Load()
	return init != nil && exists(fileOf(init, "/run/flannel/subnet.env"))
}

// File returns the path on the host of a file of the running machine, e.g. /run/flannel/subnet.env.
func (n *Node) File(path string) string { return fileOf(n.init.Load(), path) }

func fileOf(init *controlplane.Process, path string) string {
	return filepath.Join("/proc", strconv.Itoa(init.Pid()), "root", path)
}
