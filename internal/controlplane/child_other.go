//go:build !linux

package controlplane

import "os/exec"

// startChild starts a child; it outlives this process if this process is killed.
func startChild(cmd *exec.Cmd) error { return cmd.Start() }
