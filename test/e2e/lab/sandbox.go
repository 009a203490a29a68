package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The test binary has three roles: outside it creates the sandbox, inside it runs the tests, and it is the
// first process of every node.
const (
	partVar    = "READYGATE_LAB_PART"
	partInside = "inside"
	partNode   = "node"

	// directoryVar passes the sandbox's directory to the inside. Its name is also the name of the cgroups.
	directoryVar = "READYGATE_LAB_DIRECTORY"

	// wantedVar enables the tests on real nodes. If they cannot run, tests fail with the value "required",
	// which make e2e sets, and are skipped with any other value.
	wantedVar = "READYGATE_E2E"

	prefix = "readygate-e2e-"
)

// unavailable is the reason why tests are skipped; empty if they run.
var unavailable string

// Main runs the tests inside the sandbox and returns their exit code. It is for TestMain.
func Main(run func() int) int {
	switch os.Getenv(partVar) {
	case partNode:
		return report(beNode())
	case partInside:
		if err := enter(); err != nil {
			return report(err)
		}
		return run()
	}
	if unavailable = missing(); unavailable != "" {
		if os.Getenv(wantedVar) == "required" {
			return report(errors.New(unavailable))
		}
		return run()
	}
	code, err := runInside()
	return max(code, report(err))
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "lab:", err)
	return 1
}

// missing returns what this machine lacks, and how to install it.
func missing() string {
	switch {
	case os.Getenv(wantedVar) == "":
		return "real nodes are started by make e2e, one scenario by make e2e RUN=TestUninstall"
	case runtime.GOOS != "linux":
		return "real nodes need Linux"
	case os.Geteuid() != 0:
		return "real nodes need root, for namespaces and mounts: sudo make e2e"
	case len(missingControllers()) > 0:
		return fmt.Sprintf("real nodes need the cgroup controllers %s in %s", strings.Join(missingControllers(), ", "), cgroupRoot)
	}
	for _, tool := range []string{"ip", "nft", "nsenter", "mount", "runc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Sprintf("real nodes need the program %s (make e2e installs it on Debian)", tool)
		}
	}
	return ""
}

// runInside runs this program again as the first process of a new pid namespace, waits for it,
// and removes what the kernel does not.
func runInside() (code int, err error) {
	removeLeftovers()
	name := fmt.Sprint(prefix, os.Getpid())
	dir := filepath.Join(os.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 1, err
	}
	before := readSettings()
	defer func() {
		err = errors.Join(err, removeCgroups(name), os.RemoveAll(dir))
		if left := leftovers(dir, before); len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("left behind: %s", strings.Join(left, "; ")))
		}
	}()

	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), partVar+"="+partInside, directoryVar+"="+dir, "TMPDIR="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // Ctrl-C is for us: we end the inside, and then clean up
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	runtime.LockOSThread() // Pdeathsig means the thread that started the child
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("making namespaces: %w", err)
	}
	go func() {
		s := <-signals
		fmt.Fprintf(os.Stderr, "lab: %v: ending every node\n", s)
		_ = cmd.Process.Kill()
	}()
	_ = cmd.Wait() // how it ended is in ProcessState
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, fmt.Errorf("the tests ended with %v", cmd.ProcessState)
}

// enter prepares the new namespaces for the tests.
func enter() error {
	// Mounts must not propagate to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return startSwitch()
}

// sandbox is the directory of all temporary files, and the name of the cgroups.
func sandbox() (directory, name string) {
	directory = os.Getenv(directoryVar)
	return directory, filepath.Base(directory)
}

// removeLeftovers removes what a sandbox left whose outside was killed and could not clean up.
func removeLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if _, err := os.Stat("/proc/" + strings.TrimPrefix(name, prefix)); errors.Is(err, os.ErrNotExist) {
			_ = removeCgroups(name)
			_ = os.RemoveAll(dir)
		}
	}
}
