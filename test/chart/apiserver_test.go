package chart_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// TestHelmUpgradeFromV1beta1: the API server is replaced by one that serves the policies as v1 only. Helm cannot read the
// objects of its release until v1beta1 is served again, as docs/how-to/upgrade.md says. Not in parallel: environment
// variables select the binaries.
func TestHelmUpgradeFromV1beta1(t *testing.T) {
	upgrade := testenv.NextAPIServer(t)
	c := emptyCluster(t)
	wantVersion(t, c, "v1beta1")
	h := map[string]helm{}
	for _, binary := range helms {
		h[binary] = helmOf(t, c, binary)
	}
	// One release is installed by Helm 3 and upgraded by Helm 4.
	h["helm3"].run(t, "install", "")
	upgrade(c, "")
	wantVersion(t, c, "v1")
	for _, binary := range helms {
		if err := h[binary].try(t, "upgrade", ""); err == nil || !strings.Contains(err.Error(), `no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1beta1"`) {
			t.Errorf("%s upgrade without v1beta1: %v", binary, err)
		}
	}
	upgrade(c, "--runtime-config=admissionregistration.k8s.io/v1beta1=true")
	h["helm3"].run(t, "upgrade", "")
	upgrade(c, "")
	for _, binary := range helms {
		h[binary].run(t, "upgrade", "")
	}
	if policy := policyForNodesOf(t, c); policy.Labels[admission.PartOfLabel] != admission.PartOf {
		t.Errorf("the policy has the labels %v", policy.Labels)
	}
}

// wantVersion skips the test unless the API server serves MutatingAdmissionPolicy in this version.
func wantVersion(t *testing.T, c *testenv.Cluster, version string) {
	t.Helper()
	c.NeedMutatingPolicies(t)
	if served, err := c.MutatingVersion(); err != nil {
		t.Fatal(err)
	} else if served != version {
		t.Skip(testenv.Unavailable + "the API server serves MutatingAdmissionPolicy as " + served)
	}
}
