package cni

import "context"

// Sweep takes back what killed runs left, as Run does before it begins.
func (c *Canary) Sweep(ctx context.Context) error {
	s, err := openState(ctx, c.stateDir())
	if err != nil {
		return err
	}
	defer s.close()
	return c.sweep(ctx, s)
}
