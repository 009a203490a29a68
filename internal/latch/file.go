package latch

import (
	"errors"
	"io"
	"os"
	"strconv"
	"time"
)

// maxFile is longer than any key or boot ID, in bytes.
const maxFile = 1024

// readShort returns the contents of a file. It fails if they fill the buffer: the start of a longer file could look like a
// key.
func readShort(path string, buffer []byte) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // nothing was written
	n, err := io.ReadFull(file, buffer)
	switch {
	case err == nil:
		return "", errors.New(path + " has " + strconv.Itoa(len(buffer)) + " bytes or more, must have fewer")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return string(buffer[:n]), nil
	}
	return "", err
}

// writtenAt is when a file was written; zero if it is unknown.
func writtenAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
