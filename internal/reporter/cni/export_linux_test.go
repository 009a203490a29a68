package cni

import "context"

// Sweep removes the canaries of killed runs, like Run.
func (c *Canary) Sweep(ctx context.Context) error {
	s, err := openState(ctx, c.stateDir())
	if err != nil {
		return err
	}
	defer s.close()
	return c.sweep(ctx, s)
}
