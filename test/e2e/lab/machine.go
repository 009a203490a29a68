package lab

import (
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// machine describes a node to its first process.
type machine struct {
	Name, Address string
	// Disk is the directory with the machine's own files.
	Disk string
	// Assets is the directory of the binaries.
	Assets string
	// CA is the file of the authority that the API server's clients are signed by.
	CA          string
	KubeletArgs []string
}

const specFile = 3 // the descriptor that the description is read from

// beNode is the first process of a machine: it waits until the machine has been put together,
// makes its file systems, starts its services and keeps them running. It does not return
// unless something fails.
func beNode() error {
	var m machine
	if err := json.NewDecoder(os.NewFile(specFile, "spec")).Decode(&m); err != nil {
		return fmt.Errorf("reading the description of the machine: %w", err)
	}
	// A thread has its own cgroup namespace: mount and start from this one.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(m.Name)); err != nil {
		return err
	}
	if err := m.mountAll(); err != nil {
		return err
	}
	if err := bootNow(); err != nil {
		return fmt.Errorf("setting the time of the boot: %w", err)
	}
	if err := configureCard(m.Address); err != nil {
		return err
	}
	return m.serve()
}

// bootNow makes processes that this thread starts see a boot a moment ago: the kernel must not report the
// boot time of the host to them.
func bootNow() error {
	err := unix.Unshare(unix.CLONE_NEWTIME)
	if errors.Is(err, unix.EINVAL) {
		fmt.Println("this kernel has no time namespaces: the machine reports the host's boot time")
		return nil
	}
	if err != nil {
		return err
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return err
	}
	return os.WriteFile(fmt.Sprintf("/proc/%d/timens_offsets", unix.Gettid()), fmt.Appendf(nil, "boottime -%d 0\n", up.Sec), 0)
}

// service is a program that the machine keeps running.
type service struct {
	name string
	args []string
}

// serve starts the services, restarts them when they end, as an init system does, and reaps all processes
// of this machine.
func (m *machine) serve() error {
	children := make(chan os.Signal, 64)
	signal.Notify(children, unix.SIGCHLD)
	running := map[int]service{}
	if err := m.writeConfig(); err != nil {
		return err
	}
	if err := m.start(running, m.containerd()); err != nil {
		return err
	}
	if err := awaitListener("unix", containerdSocket); err != nil {
		return err
	}
	for _, s := range []service{m.kubelet(), m.kubeProxy()} {
		if err := m.start(running, s); err != nil {
			return err
		}
	}
	for range children {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
			ended, ours := running[pid]
			if !ours {
				continue
			}
			delete(running, pid)
			fmt.Printf("%s ended with status %#x and is started again\n", ended.name, uint32(status))
			time.Sleep(time.Second)
			if err := m.start(running, ended); err != nil {
				return err
			}
		}
	}
	return nil
}

// start starts a service. Only serve waits for the process.
func (m *machine) start(running map[int]service, s service) error {
	log, err := os.OpenFile(filepath.Join(m.Disk, "log", s.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the service has its own copy
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"HOME=/root", "PATH=" + m.Assets + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	if err := cmd.Start(); err != nil {
		return err
	}
	running[cmd.Process.Pid] = s
	return nil
}

// awaitListener returns when a process listens on the address.
func awaitListener(network, address string) error {
	var err error
	for range 600 {
		var conn net.Conn
		if conn, err = net.Dial(network, address); err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("waiting for a listener: %w", err)
}

// machineID stays the same across reboots and differs per machine.
func (m *machine) machineID() string { return fmt.Sprintf("%x\n", md5.Sum([]byte(m.Name))) }
