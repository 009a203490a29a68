//go:build !unix

package command

import "os/exec"

func killGroup(*exec.Cmd) {}

// EndGroup does nothing where there are no process groups.
func EndGroup(*exec.Cmd) {}
