//go:build !linux

package probe

import "os"

// open opens a file to read, below root.
func open(root, path string) (*os.File, error) { return openWithin(root, path) }
