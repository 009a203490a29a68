package testenv

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
)

// InstallPolicies installs the policies of dist/policies.yaml. The API server applies them about a second later;
// condition TaintedAtCreation of a rule shows when.
func (c *Cluster) InstallPolicies(ctx context.Context) error {
	for _, obj := range admission.Installed() {
		if err := c.Client.Create(ctx, obj.(client.Object)); err != nil {
			return fmt.Errorf("installing a %T: %w", obj, err)
		}
	}
	return nil
}
