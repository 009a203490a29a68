package chart_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// rollbackFlags are the flags with which Helm overwrites the policy that the manager has written.
var rollbackFlags = map[string][]string{"helm": {"--force-conflicts"}}

// TestRollbackWhileAManagerRuns: Helm restores the policy for new nodes without rules, and the manager writes
// the rules again.
func TestRollbackWhileAManagerRuns(t *testing.T) {
	t.Parallel()
	for _, binary := range helms {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			c := emptyCluster(t)
			h := helmOf(t, c, binary)
			h.run(t, "install", "")
			_, stop, err := c.RunManager()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = stop() }) // the result does not matter
			rules := []*v1alpha1.NodeReadinessRule{covered(t, c, "first")}
			h.run(t, "upgrade", "", "--set", "manager.podAnnotations.revision=second")
			rules = append(rules, covered(t, c, "second"))

			served, before := c.ServesMutatingPolicies(t), int64(0)
			if served {
				before = policyForNodesOf(t, c).Generation
			}
			if served && len(rollbackFlags[binary]) > 0 {
				if err := h.try(t, "rollback", "", "1"); err == nil || !strings.Contains(err.Error(), admission.TaintNewNodesName) || !strings.Contains(err.Error(), "conflict") {
					t.Errorf("a rollback without %v: %v", rollbackFlags[binary], err)
				}
			}
			h.run(t, "rollback", "", append(rollbackFlags[binary], "1")...)
			wantRolledBack(t, c)
			if !served {
				return
			}
			testenv.Eventually(t, "the manager to write the policy again", func(context.Context) error { return repaired(policyForNodesOf(t, c), before, rules) })
			for _, rule := range rules {
				wantCreatedHeld(t, c, rule.Name)
			}
		})
	}
}

// covered creates a rule and returns it when the API server taints new nodes for it.
func covered(t *testing.T, c *testenv.Cluster, name string) *v1alpha1.NodeReadinessRule {
	t.Helper()
	if err := c.Client.Create(t.Context(), testenv.Rule(name)); err != nil {
		t.Fatal(err)
	}
	return c.EventuallyCovered(t, name)
}

// wantRolledBack checks that the annotation of the upgrade is removed.
func wantRolledBack(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	var manager appsv1.Deployment
	if err := c.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "readygate-manager"}, &manager); err != nil {
		t.Fatal(err)
	}
	if revision, there := manager.Spec.Template.Annotations["revision"]; there {
		t.Errorf("after the rollback the manager has the annotations of revision %q", revision)
	}
}

// repaired returns an error until Helm and then the manager have written the policy.
func repaired(taintNewNodes *admissionv1.MutatingAdmissionPolicy, before int64, rules []*v1alpha1.NodeReadinessRule) error {
	if taintNewNodes.Generation < before+2 {
		return fmt.Errorf("generation %d, was %d: Helm and the manager have not both written the policy", taintNewNodes.Generation, before)
	}
	for _, rule := range rules {
		if !admission.ReadTaintNewNodes(&taintNewNodes.Spec).Covers(rule.UID) {
			return fmt.Errorf("the policy lacks the rule %s: %v", rule.Name, taintNewNodes.Spec)
		}
	}
	return nil
}

// wantCreatedHeld checks that a new node of the rule has the taint once the API server enforces the policy.
func wantCreatedHeld(t *testing.T, c *testenv.Cluster, rule string) {
	t.Helper()
	created := func(ctx context.Context, options ...client.CreateOption) error {
		node := testenv.Node("new-"+rule, testenv.Pool(rule))
		if err := c.Client.Create(ctx, node, options...); err != nil {
			return err
		}
		if !testenv.HasTaint(node, testenv.TaintKey(rule)) {
			return fmt.Errorf("a node of the rule %s is created with the taints %v", rule, node.Spec.Taints)
		}
		return nil
	}
	testenv.Eventually(t, "the policy to be in force", func(ctx context.Context) error { return created(ctx, client.DryRunAll) })
	if err := created(t.Context()); err != nil {
		t.Error(err)
	}
}
