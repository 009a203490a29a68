package probe

import (
	"cmp"
	"os"
	"strings"
	"syscall"
)

// openWithin opens a file below a root. It rejects links that are absolute or lead out of the root. It is
// for systems without openat2.
func openWithin(root, path string) (*os.File, error) {
	dir, err := os.OpenRoot(cmp.Or(root, "/"))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	return dir.OpenFile(cmp.Or(strings.TrimLeft(path, "/"), "."), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
