//go:build !unix

package command

import "os/exec"

func killGroup(*exec.Cmd) {}

// EndGroup does nothing on systems without process groups.
func EndGroup(*exec.Cmd) {}
