package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// podName is what this program calls itself where it is to become a container of a pod.
const podName = "reporterbench-pod"

// Becoming a container is done on the main thread, before anything else: the signal that ends
// it with its parent is of that thread, and so is the mount namespace.
func init() {
	if os.Args[0] != podName {
		return
	}
	runtime.LockOSThread()
	if err := enterPod(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, podName+":", err)
		os.Exit(125)
	}
}

// podCommand are the arguments with which this program becomes the command: with the files of
// a directory as those of its service account, unless it is empty, in these control groups.
func podCommand(account string, groups []string, command ...string) []string {
	return append([]string{podName, account, strings.Join(groups, ":")}, command...)
}

func enterPod(account, groups string, command []string) error {
	if account != "" {
		if err := mountAccount(account); err != nil {
			return fmt.Errorf("mounting the token: %w", err)
		}
	}
	for group := range strings.SplitSeq(groups, ":") {
		if group == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("entering a control group: %w", err)
		}
	}
	return fmt.Errorf("starting %s: %w", command[0], syscall.Exec(command[0], command, os.Environ()))
}

// mountAccount puts the files where pods have those of their service account. Only this
// process sees them: in a mount namespace of its own, on a file system in memory.
func mountAccount(dir string) error {
	files := map[string][]byte{}
	for _, name := range []string{"token", "ca.crt", "namespace"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		files[name] = data
	}
	run, err := filepath.EvalSymlinks("/var/run")
	if err != nil {
		return err
	}
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return err
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", run, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size=1m"); err != nil {
		return err
	}
	mounted := filepath.Join(run, "secrets/kubernetes.io/serviceaccount")
	if err := os.MkdirAll(mounted, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(mounted, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
