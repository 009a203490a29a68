//go:build !linux

package latch

// Watch tells of changes in a directory: not on this system.
func Watch(string) <-chan struct{} { return nil }
