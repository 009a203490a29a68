//go:build !linux

package controlplane

import "os/exec"

// StartChild starts a child; it outlives this process if this process is killed.
func StartChild(cmd *exec.Cmd) error { return cmd.Start() }
