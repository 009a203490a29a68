package testenv

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
)

// InstallPolicies installs the policies that an administrator installs. The API server sees
// them about a second later: the condition TaintedAtCreation of a rule reports it.
func (c *Cluster) InstallPolicies(ctx context.Context) error {
	for _, obj := range admission.Installed() {
		if err := c.Client.Create(ctx, obj.(client.Object)); err != nil {
			return fmt.Errorf("installing a %T: %w", obj, err)
		}
	}
	return nil
}
