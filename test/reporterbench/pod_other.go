//go:build !linux

package main

// podCommand is the command alone: without namespaces there are no pods.
func podCommand(_ string, _ []string, command ...string) []string { return command }
