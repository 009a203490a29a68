//go:build !linux

package cni

import "context"

// Run returns an error.
func (*Canary) Run(context.Context) error {
	return failure(NotPermitted, "a canary needs network namespaces, which exist only on Linux")
}
