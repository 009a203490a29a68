package integration_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// The manager's role allows what it needs, as every other test shows, and denies these requests.
func TestManagersRoleDeniesUnneededAccess(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	rules := v1alpha1.GroupVersion.Group
	for name, attributes := range map[string]authorizationv1.ResourceAttributes{
		"deleting nodes":                   {Verb: "delete", Resource: "nodes"},
		"creating nodes":                   {Verb: "create", Resource: "nodes"},
		"replacing nodes":                  {Verb: "update", Resource: "nodes"},
		"writing node conditions":          {Verb: "patch", Resource: "nodes", Subresource: "status"},
		"creating rules":                   {Verb: "create", Group: rules, Resource: "nodereadinessrules"},
		"deleting rules":                   {Verb: "delete", Group: rules, Resource: "nodereadinessrules"},
		"replacing rules":                  {Verb: "update", Group: rules, Resource: "nodereadinessrules"},
		"reading secrets":                  {Verb: "get", Resource: "secrets", Namespace: testenv.ManagerNamespace},
		"watching pods":                    {Verb: "watch", Resource: "pods"},
		"writing pods":                     {Verb: "patch", Resource: "pods", Namespace: "default"},
		"creating pods":                    {Verb: "create", Resource: "pods", Namespace: "default"},
		"creating rules for pods":          {Verb: "create", Group: "readygate.dev", Resource: "podreadinessrules"},
		"reading config maps":              {Verb: "list", Resource: "configmaps", Namespace: testenv.ManagerNamespace},
		"evicting pods":                    {Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "default"},
		"deleting events":                  {Verb: "delete", Group: "events.k8s.io", Resource: "events", Namespace: "default"},
		"writing leases elsewhere":         {Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system", Name: v1alpha1.LeaseName},
		"writing other leases":             {Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: testenv.ManagerNamespace, Name: "other"},
		"reading other leases":             {Verb: "list", Group: "coordination.k8s.io", Resource: "leases"},
		"creating policies":                {Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
		"creating roles":                   {Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		"escalating":                       {Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		"impersonating":                    {Verb: "impersonate", Resource: "users"},
		"changing the CRD":                 {Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		"issuing service account tokens":   {Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: testenv.ManagerNamespace},
		"reaching kubelets through a node": {Verb: "get", Resource: "nodes", Subresource: "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: testenv.ManagerUser, Groups: []string{"system:authenticated"}, ResourceAttributes: &attributes,
			}}
			if err := c.Client.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed {
				t.Errorf("allowed: %s", review.Status.Reason)
			}
		})
	}
}
