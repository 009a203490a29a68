package cni

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onOwnThread runs f on a thread of its own that ends after it, so that f may change the namespace of
// the thread. f must never start plugins: they would start in that namespace.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread cannot end, and represents the process in /proc. While it is
			// locked here, the other goroutine gets another thread.
			done <- onOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		done <- f() // never unlocked
	}()
	return <-done
}

// makeNetNS creates a network namespace that exists while it is mounted at path. Other mount namespaces
// see it if the mount that contains path propagates.
func makeNetNS(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o400)
	if err != nil {
		return scratchFailed("making the canary's namespace", err)
	}
	_ = f.Close()
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return notPermitted("making a network namespace", "CAP_SYS_ADMIN", err)
		}
		if err := unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, ""); err != nil {
			return notPermitted("mounting a network namespace", "CAP_SYS_ADMIN", err)
		}
		return nil
	})
}

// inNetNS runs f with the namespace as its network.
func inNetNS(path string, f func() error) error {
	return onOwnThread(func() error {
		ns, err := os.Open(path)
		if err != nil {
			return scratchFailed("entering the canary's namespace", err)
		}
		defer func() { _ = ns.Close() }()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return notPermitted("entering the canary's namespace", "CAP_SYS_ADMIN", err)
		}
		return f()
	})
}

// isNetNS reports whether a namespace is mounted at path.
func isNetNS(path string) bool {
	var at unix.Statfs_t
	return unix.Statfs(path, &at) == nil && at.Type == unix.NSFS_MAGIC
}

// removeNetNS unmounts the namespace and removes the file at path. The kernel removes the remaining
// interfaces with the namespace.
func removeNetNS(path string) error {
	for isNetNS(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func notPermitted(doing, needs string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return failure(NotPermitted, "%s needs %s, and a seccomp or AppArmor profile that allows it", doing, needs)
	}
	return scratchFailed(doing, err)
}

// addressed returns the index of the interface, and an error unless it is up and has a global unicast address.
func addressed(name string) (int, error) {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return 0, failure(NotConnected, "ADD succeeded, but there is no interface %s", name)
	}
	if nic.Flags&net.FlagUp == 0 {
		return 0, failure(NotConnected, "ADD succeeded, but interface %s is down", name)
	}
	addrs, err := nic.Addrs()
	if err != nil {
		return 0, scratchFailed("reading the addresses of "+name, err)
	}
	for _, addr := range addrs {
		if prefix, ok := addr.(*net.IPNet); ok && prefix.IP.IsGlobalUnicast() {
			return nic.Index, nil
		}
	}
	return 0, failure(NotConnected, "ADD succeeded, but interface %s has no address", name)
}
