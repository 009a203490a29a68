package check

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File checks a file. It is healthy if the file exists, is new enough and contains the text.
type File struct {
	// path is the absolute path, e.g. /var/lib/calico/nodename.
	Path string `json:"path"`
	// newerThan is the maximum time since the last modification, e.g. 5m. Absent: any time.
	NewerThan *Duration `json:"newerThan,omitempty"`
	// contains is a text that the first 64 KiB must contain. Absent: any content.
	Contains string `json:"contains,omitempty"`
}

// maxFile is the maximum number of bytes read of a file.
const maxFile = 64 << 10

type fileCheck struct{ *File }

func (f *File) check(Env) (Check, error) {
	switch {
	case !filepath.IsAbs(f.Path):
		return nil, wrong("path", "is %q, must be absolute, e.g. /var/lib/calico/nodename", f.Path)
	case len(f.Contains) > maxFile:
		return nil, wrong("contains", "has %d bytes, must have at most %d: the check reads no more of a file", len(f.Contains), maxFile)
	}
	if err := f.NewerThan.AtLeast(time.Second, "newerThan", "5m"); err != nil {
		return nil, err
	}
	return fileCheck{f}, nil
}

func (c fileCheck) Run(context.Context) Observation {
	info, err := os.Stat(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unhealthy(ReasonFileMissing, c.Path+" does not exist")
	case err != nil:
		return failed(ReasonFileUnreadable, c.Path+" cannot be accessed: "+explainFile(err))
	case c.NewerThan != nil && time.Since(info.ModTime()) > c.NewerThan.Duration:
		return unhealthy(ReasonFileTooOld, c.Path+" has not changed for more than "+c.NewerThan.String())
	case c.Contains == "":
		return healthy(ReasonFileOK, c.Path+" exists")
	case !info.Mode().IsRegular():
		return failed(ReasonFileUnreadable, c.Path+" is not a regular file, so its content cannot be checked")
	}
	return c.checkContent()
}

// checkContent reads at most maxFile bytes.
func (c fileCheck) checkContent() Observation {
	file, err := os.Open(c.Path)
	if err != nil {
		return failed(ReasonFileUnreadable, c.Path+" cannot be read: "+explainFile(err))
	}
	defer file.Close() //nolint:errcheck // only read
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	switch {
	case err != nil:
		return failed(ReasonFileUnreadable, c.Path+" cannot be read: "+explainFile(err))
	case !bytes.Contains(content, []byte(c.Contains)):
		return unhealthy(ReasonFileLacksText, c.Path+" does not contain the required text")
	}
	return healthy(ReasonFileOK, c.Path+" contains the required text")
}

func explainFile(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return "unknown error"
}
