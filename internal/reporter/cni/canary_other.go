//go:build !linux

package cni

import "context"

// Run says that it cannot.
func (*Canary) Run(context.Context) error {
	return failure(NotPermitted, "a canary needs network namespaces: only on Linux")
}

// Sweep says that it cannot.
func (*Canary) Sweep(context.Context) error {
	return failure(NotPermitted, "a canary needs network namespaces: only on Linux")
}
