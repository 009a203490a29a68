package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// The roles of the manager and of the cleanup grant patch on rules. A token of either account can change only
// Readygate's finalizer and the status of a rule, also if one of the two CRDs is not installed. An administrator is not
// limited.
func TestTheManagerAndTheCleanupCannotChangeRules(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	permitCleanup(t, c)
	manager, _ := managerByToken(t, c)
	cleanup, _ := accountByToken(t, c, admission.CleanupAccount)
	accounts := map[string]client.Client{"manager": manager, "cleanup": cleanup}
	nodes, pods := testenv.Rule("nodes"), gateRule("pods")
	for _, rule := range []client.Object{nodes, pods} {
		rule.SetLabels(map[string]string{"example.com/team": "a"})
		rule.SetAnnotations(map[string]string{"example.com/note": "a"})
		rule.SetFinalizers([]string{"example.com/keep"})
		c.Create(t, rule)
	}

	eventuallyRulesLimited(t, accounts, nodes)
	for who, as := range accounts {
		t.Run("the "+who+" on a NodeReadinessRule", func(t *testing.T) {
			limitedToTheFinalizer(t, c, as, nodes, v1alpha1.Finalizer, map[string]string{
				"dryRun":         `{"spec": {"dryRun": true}}`,
				"maxUnavailable": `{"spec": {"maxUnavailable": 1}}`,
			})
		})
		t.Run("the "+who+" on a PodReadinessRule", func(t *testing.T) {
			limitedToTheFinalizer(t, c, as, pods, podv1alpha1.Finalizer, map[string]string{
				"the selectors": `{"spec": {"podSelector": {"matchLabels": {"app": "other"}}, "namespaceSelector": {"matchLabels": {"team": "other"}}}}`,
				"the components": `{"spec": {"closePolicy": "OnNotReady", "components": [{"name": "never", "nodeCondition": {"type": "example.com/Never"}},` +
					` {"name": "local", "http": {"url": "http://localhost:8080/"}}]}}`,
			})
		})
	}

	crd := crdObject()
	crd.Name = podv1alpha1.CRDName
	c.Patch(t, pods, func() { pods.Finalizers = nil })
	if err := c.Client.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "deletion of the CRD of PodReadinessRules", func(ctx context.Context) error {
		if err := c.Client.List(ctx, &podv1alpha1.PodReadinessRuleList{}); err == nil {
			return errors.New("it is still served")
		}
		return nil
	})
	for who, as := range accounts {
		t.Run("the "+who+" without the CRD of PodReadinessRules", func(t *testing.T) {
			limitedToTheFinalizer(t, c, as, nodes, v1alpha1.Finalizer, map[string]string{"dryRun": `{"spec": {"dryRun": true}}`})
		})
	}
}

// refusedRule reports whether an error is a rejection by the policy because of this field.
func refusedRule(err error, field string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+admission.RulesName+"'") &&
		strings.Contains(err.Error(), "the manager and the cleanup may add and remove their finalizer on rules, and not change "+field+" (")
}

// eventuallyRulesLimited waits until the API server enforces the policy.
func eventuallyRulesLimited(t *testing.T, accounts map[string]client.Client, rule client.Object) {
	t.Helper()
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`))
	testenv.Eventually(t, "the policy to be in force", func(ctx context.Context) error {
		for who, as := range accounts {
			if err := as.Patch(ctx, rule.DeepCopyObject().(client.Object), label, client.DryRunAll); !refusedRule(err, "metadata.labels") {
				return fmt.Errorf("the %s got %v, want a rejection", who, err)
			}
		}
		return nil
	})
}

// limitedToTheFinalizer checks that the policy rejects these changes of the spec and changes of the metadata by the
// account, but not by an administrator, and that the account can add and remove the finalizer and write the status.
func limitedToTheFinalizer(t *testing.T, c *testenv.Cluster, as client.Client, rule client.Object, finalizer string, specs map[string]string) {
	t.Helper()
	refused := map[string]struct{ patch, field string }{
		"a label added":               {`{"metadata": {"labels": {"a": "b"}}}`, "metadata.labels"},
		"all labels removed":          {`{"metadata": {"labels": null}}`, "metadata.labels"},
		"an annotation changed":       {`{"metadata": {"annotations": {"example.com/note": "b"}}}`, "metadata.annotations"},
		"an owner given":              {`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "` + strangeUID + `"}]}}`, "metadata.ownerReferences"},
		"another's finalizer removed": {`{"metadata": {"finalizers": null}}`, "finalizers of other controllers"},
		"another's finalizer added":   {`{"metadata": {"finalizers": ["example.com/keep", "example.com/new"]}}`, "finalizers of other controllers"},
	}
	for name, patch := range specs {
		refused[name+" changed"] = struct{ patch, field string }{patch, "spec"}
	}
	for name, tc := range refused {
		patch := client.RawPatch(types.MergePatchType, []byte(tc.patch))
		if err := c.Client.Patch(t.Context(), rule.DeepCopyObject().(client.Object), patch, client.DryRunAll); err != nil {
			t.Errorf("%s: an administrator is also rejected: %v", name, err)
		}
		if err := as.Patch(t.Context(), rule.DeepCopyObject().(client.Object), patch, client.DryRunAll); !refusedRule(err, tc.field) {
			t.Errorf("%s: must be rejected because of %s, got %v", name, tc.field, err)
		}
	}

	for _, finalizers := range []string{`["example.com/keep", "` + finalizer + `"]`, `["example.com/keep"]`} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`))
		if err := as.Patch(t.Context(), rule.DeepCopyObject().(client.Object), patch); err != nil {
			t.Errorf("the finalizers %s are rejected: %v", finalizers, err)
		}
	}
	// The API server ignores metadata and spec in a write of the status.
	status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"dryRun": true, "closePolicy": "OnNotReady"}, "metadata": {"labels": {"a": "b"}}, "status": {"conditions": [{"type": "Accepted", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": %q}]}}`,
		metav1.Now().UTC().Format("2006-01-02T15:04:05Z")))
	written := rule.DeepCopyObject().(client.Object)
	if err := as.Status().Patch(t.Context(), written, status); err != nil {
		t.Errorf("the status is rejected: %v", err)
	}
	if written.GetLabels()["a"] != "" || written.GetGeneration() != rule.GetGeneration() {
		t.Errorf("a write of the status changed the labels to %v, and the generation from %d to %d", written.GetLabels(), rule.GetGeneration(), written.GetGeneration())
	}
}
