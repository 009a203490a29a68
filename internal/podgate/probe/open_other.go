//go:build !linux

package probe

import "os"

// open opens a file below root for reading.
func open(root, path string) (*os.File, error) { return openWithin(root, path) }
