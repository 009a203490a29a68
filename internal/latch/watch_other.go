//go:build !linux

package latch

// Watch is not supported on this system.
func Watch(string) <-chan struct{} { return nil }
