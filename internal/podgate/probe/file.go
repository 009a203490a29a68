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
	// maxFile is how much of a file is looked at.
	maxFile = 64 << 10
	// maxShown is how much is shown of what a file should contain.
	maxShown = 128
)

const notRegular = "not a regular file"

// lookAt looks at a file. One that is there and contains the value, if one is asked for, says yes.
//
// It must be a regular file: a template that is filled with nothing may name the directory, which is
// there for every pod; and a FIFO or a device has no content that would end.
func lookAt(root string, p podrule.Probe) podrule.Answer {
	file, err := open(root, p.Path)
	if err != nil {
		return no(fileWords(root, p.Path, err))
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return no(fileWords(root, p.Path, err))
	case !info.Mode().IsRegular():
		return no(notRegular)
	case p.Contains == "":
		return yes
	}
	// One byte more than is looked at shows where a value at the end of that ends.
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch shown := text.Cut(p.Contains, maxShown); {
	case err != nil:
		return no(fileWords(root, p.Path, err))
	case hasValue(content, p.Contains):
		return yes
	case len(content) > maxFile:
		return no(fmt.Sprintf("the first %d KiB of the file do not contain %s", maxFile>>10, shown))
	default:
		return no("the file does not contain " + shown)
	}
}

// fileWords say why a file cannot be looked at.
func fileWords(root, path string, err error) string {
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && lacksDirectory(root, path):
		return "no such directory: is podgate.hostPaths set?"
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied: may the agent read it?"
	case errors.Is(err, syscall.ENXIO): // a socket
		return notRegular
	case errors.As(err, &failed):
		return "the file cannot be read: " + failed.Err.Error()
	}
	return "the file cannot be read"
}

// lacksDirectory says that even the directory of a file is missing, as where it is not mounted.
func lacksDirectory(root, path string) bool {
	dir, err := open(root, filepath.Dir(path))
	if err == nil {
		_ = dir.Close() // that it was there is all
	}
	return errors.Is(err, fs.ErrNotExist)
}
