package probe

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openTries is the maximum number of attempts if another process renames a directory of the path meanwhile.
const openTries = 8

// open opens a file for reading as if root were the root of the file system: absolute links of the
// host resolve below root, and no link leads to the agent's own files. It does not
// wait for the writer of a FIFO.
func open(root, path string) (*os.File, error) {
	root = cmp.Or(root, "/")
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir) //nolint:errcheck // opened with O_PATH
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	for range openTries {
		var fd int
		fd, err = unix.Openat2(dir, path, how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // a kernel before 5.6, or a seccomp filter that blocks the call
			return openWithin(root, path)
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}
