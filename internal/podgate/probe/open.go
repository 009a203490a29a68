package probe

import (
	"cmp"
	"os"
	"strings"
	"syscall"
)

// openWithin opens a file below a root, where a link must not lead out of it, nor be absolute. It is
// for systems that have no better way.
func openWithin(root, path string) (*os.File, error) {
	dir, err := os.OpenRoot(cmp.Or(root, "/"))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	return dir.OpenFile(cmp.Or(strings.TrimLeft(path, "/"), "."), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
