package latch

import (
	"os"
	"syscall"
)

// Watch signals changes in a directory: the kubelet replaces a link there when it delivers a key. It returns nil if the
// directory cannot be watched.
func Watch(dir string) <-chan struct{} {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_MOVED_TO); err != nil {
		_ = syscall.Close(fd) // nothing depends on it
		return nil
	}
	changes := make(chan struct{}, 1)
	go forward(os.NewFile(uintptr(fd), "inotify"), changes)
	return changes
}

// forward signals every event until the watch fails.
func forward(events *os.File, changes chan<- struct{}) {
	buffer := make([]byte, 4096)
	for {
		if _, err := events.Read(buffer); err != nil {
			return // the latch polls as well
		}
		select {
		case changes <- struct{}{}:
		default: // the last signal is pending
		}
	}
}
