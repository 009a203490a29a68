package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/readygate/readygate/internal/testenv"
)

// kube-controller-manager checks the expressions of validating policies against the types of the matched resources. It
// must report no warning for Readygate's policies.
func TestNoPolicyHasATypeWarning(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list admissionv1.ValidatingAdmissionPolicyList
	testenv.Eventually(t, "type checking of all policies", func(ctx context.Context) error {
		if err := c.Client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if policy := &list.Items[i]; policy.Status.ObservedGeneration != policy.Generation {
				return fmt.Errorf("%s is not checked", policy.Name)
			}
		}
		return nil
	})
	if len(list.Items) != 10 {
		t.Errorf("%d validating policies, want 10", len(list.Items))
	}
	newest := environment.DefaultCompatibilityVersion().OffsetMinor(1)
	older := c.ServerVersion(t).LessThan(newest)
	for _, policy := range list.Items {
		if policy.Status.TypeChecking == nil {
			continue
		}
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			// The policies compare the fields that nodes have in the newest version.
			if !older || strings.Count(warning.Warning, "ERROR:") != strings.Count(warning.Warning, "undefined field") {
				t.Errorf("%s: %+v", policy.Name, warning)
			}
		}
	}
}
