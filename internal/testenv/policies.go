package testenv

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
)

// ServerVersion returns the version of the API server.
func (c *Cluster) ServerVersion(t testing.TB) *version.Version {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	info, err := d.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.MustParseGeneric(info.GitVersion)
}

// MutatingVersion returns the version of MutatingAdmissionPolicy that the API server serves.
func (c *Cluster) MutatingVersion() (string, error) {
	versions, err := mutatingpolicy.NewDiscovery(c.Config, nil)
	if err != nil {
		return "", err
	}
	return versions.Version(context.Background())
}

// Unavailable is the start of the message of a test that is skipped because the API server lacks a feature.
const Unavailable = "not available: "

// ServesMutatingPolicies reports whether the API server serves MutatingAdmissionPolicy. Otherwise it logs that the test leaves
// out what needs it.
func (c *Cluster) ServesMutatingPolicies(t testing.TB) bool {
	t.Helper()
	_, err := c.MutatingVersion()
	if meta.IsNoMatchError(err) {
		t.Log(notServed)
	} else if err != nil {
		t.Fatal(err)
	}
	return err == nil
}

const notServed = Unavailable + "the API server does not serve MutatingAdmissionPolicy"

// NeedMutatingPolicies skips the test if the API server does not serve MutatingAdmissionPolicy.
func (c *Cluster) NeedMutatingPolicies(t testing.TB) {
	t.Helper()
	if !c.ServesMutatingPolicies(t) {
		t.Skip(notServed)
	}
}

// EventuallyCovered waits until TaintedAtCreation of the rule is True, or until the rule is enforced if the API server does not
// serve MutatingAdmissionPolicy.
func (c *Cluster) EventuallyCovered(t testing.TB, rule string) *v1alpha1.NodeReadinessRule {
	t.Helper()
	if _, err := c.MutatingVersion(); meta.IsNoMatchError(err) {
		return c.EventuallyRule(t, rule, "enforced", Enforced)
	}
	return c.EventuallyRule(t, rule, "covered", Covered)
}

// Covered reports whether TaintedAtCreation of the rule is True.
var Covered = Is(v1alpha1.ConditionTaintedAtCreation, metav1.ConditionTrue, v1alpha1.ReasonPolicyActive)

// InstallPolicies installs the policies that make manifests writes, and leaves out MutatingAdmissionPolicies on an API
// server that does not serve them. The API server applies them about a second later; condition TaintedAtCreation of a rule
// shows when.
func (c *Cluster) InstallPolicies(ctx context.Context) error {
	for _, obj := range admission.Installed() {
		if err := c.Client.Create(ctx, obj.(client.Object)); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("installing a %T: %w", obj, err)
		}
	}
	return nil
}
