package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/text"
)

const (
	// maxFile is the maximum number of bytes read of a file.
	maxFile = 64 << 10
	// maxShown is the maximum length of the expected content in a reason.
	maxShown = 128
)

const notRegular = "not a regular file"

// checkFile returns yes for a file that exists and contains the value, if one is required.
//
// It must be a regular file: a template with an empty value may name the directory, which exists
// for every pod; and the content of a FIFO or a device never ends.
func checkFile(root string, p podrule.Probe) podrule.Answer {
	file, err := open(root, p.Path)
	if err != nil {
		return no(explainFile(root, p.Path, err))
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return no(explainFile(root, p.Path, err))
	case !info.Mode().IsRegular():
		return no(notRegular)
	case p.Contains == "":
		return yes
	}
	// One byte more shows whether a value at the limit ends there.
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch shown := text.Cut(p.Contains, maxShown); {
	case err != nil:
		return no(explainFile(root, p.Path, err))
	case hasValue(content, p.Contains):
		return yes
	case len(content) > maxFile:
		return no(fmt.Sprintf("the first %d KiB of the file do not contain %s", maxFile>>10, shown))
	default:
		return no("the file does not contain " + shown)
	}
}

// explainFile returns the reason why a file cannot be read.
func explainFile(root, path string, err error) string {
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && lacksDirectory(root, path):
		return "no such directory; check podgate.hostPaths"
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied; podgate must be able to read the file"
	case errors.Is(err, syscall.ENXIO): // a socket
		return notRegular
	case errors.As(err, &failed):
		return "the file cannot be read: " + failed.Err.Error()
	}
	return "the file cannot be read"
}

// lacksDirectory reports whether the directory of a file is missing too, e.g. because it is not mounted.
func lacksDirectory(root, path string) bool {
	dir, err := open(root, filepath.Dir(path))
	if err == nil {
		_ = dir.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}
