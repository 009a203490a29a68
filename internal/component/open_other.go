//go:build !linux

package component

import "os"

// open opens a file to read, below root.
func open(root, path string) (*os.File, error) { return openWithin(root, path) }
