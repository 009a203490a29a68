package chart_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
	"github.com/readygate/readygate/internal/testenv"
)

// byAnAdministrator selects policies that an administrator applies.
const byAnAdministrator = "policies.managed=false"

// TestAManagerThatDoesNotManagePoliciesHasNoRightTo: the manager has the flag for it, and the chart renders no policy
// that would replace the administrator's.
func TestAManagerThatDoesNotManagePoliciesHasNoRightTo(t *testing.T) {
	for _, managed := range []bool{true, false} {
		all := render(t, withPodgate, "--set", fmt.Sprintf("policies.managed=%v", managed))
		updates := slices.ContainsFunc(get[*rbacv1.ClusterRole](t, all, "readygate-manager").Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Resources, "mutatingadmissionpolicies") && slices.Contains(rule.Verbs, "update")
		})
		if updates != managed {
			t.Errorf("policies.managed %v: the role of the manager allows updates of policies: %v", managed, updates)
		}
		args := get[*appsv1.Deployment](t, all, "readygate-manager").Spec.Template.Spec.Containers[0].Args
		if unmanaged := slices.Contains(args, "--manage-policies=false"); unmanaged == managed {
			t.Errorf("policies.managed %v: the manager has the arguments %v", managed, args)
		}
		wantPolicies(t, all, admission.ManagerNamespace, admission.TaintNewNodesBinding(), admission.GateNewPodsBinding())
		var names []string
		for _, obj := range each[*admissionv1.MutatingAdmissionPolicy](all) {
			names = append(names, obj.Name)
		}
		slices.Sort(names)
		want := []string{admission.TolerationsName}
		if managed {
			want = []string{admission.GateNewPodsName, admission.TaintNewNodesName, admission.TolerationsName}
		}
		if !slices.Equal(names, want) {
			t.Errorf("policies.managed %v: the chart renders the policies %v, want %v", managed, names, want)
		}
	}
}

// TestHelmKeepsPoliciesThatAnAdministratorApplied: Helm keeps them, whether the release installed them first or not.
// The manager's token can update them only while policies.managed is true.
func TestHelmKeepsPoliciesThatAnAdministratorApplied(t *testing.T) {
	t.Parallel()
	for _, binary := range helms {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			c := emptyCluster(t)
			c.NeedMutatingPolicies(t)
			h, admin, values := helmOf(t, c, binary), c.Kubectl(t), ci(t, "podgate")
			h.run(t, "install", values, "--set", byAnAdministrator)
			for _, obj := range []client.Object{admission.TaintNewNodesPolicy(), admission.GateNewPodsPolicy()} {
				if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					t.Errorf("%s: %v", obj.GetName(), err)
				}
			}
			rule, forPods := testenv.Rule("first"), podRule("gated")
			rule.Finalizers = []string{v1alpha1.Finalizer} // no manager runs here
			c.Create(t, rule)
			c.Create(t, forPods)
			admin.ApplyPolicies(t)
			taintNewNodes, gates := policyForNodesOf(t, c), policyForPodsOf(t, c)
			if !admission.ReadTaintNewNodes(&taintNewNodes.Spec).Covers(rule.UID) || len(admission.ReadGateNewPods(latchOf(t, c))(&gates.Spec).Texts()) != 1 {
				t.Fatalf("the policies do not contain the rules: %v %v", taintNewNodes.Spec, gates.Spec)
			}
			keeps := func(what string) {
				t.Helper()
				if now := policyForNodesOf(t, c); !reflect.DeepEqual(now.Spec, taintNewNodes.Spec) || now.UID != taintNewNodes.UID {
					t.Errorf("%s: taintNewNodes is\n%v\nnot\n%v", what, now, taintNewNodes)
				}
				if now := policyForPodsOf(t, c); !reflect.DeepEqual(now.Spec, gates.Spec) || now.UID != gates.UID {
					t.Errorf("%s: gates is\n%v\nnot\n%v", what, now, gates)
				}
			}
			h.run(t, "upgrade", values, "--set", byAnAdministrator+",manager.podAnnotations.upgrade=again")
			keeps("an upgrade")
			wantUpdates(t, c, false)
			h.run(t, "upgrade", values, takeOver[binary]...)
			keeps("an upgrade to policies.managed=true")
			wantUpdates(t, c, true)
			h.run(t, "upgrade", values, "--set", byAnAdministrator)
			keeps("an upgrade to policies.managed=false")
			wantUpdates(t, c, false)
			h.run(t, "upgrade", values, "--set", byAnAdministrator+",manager.podAnnotations.upgrade=last")
			keeps("another upgrade")
			wantCreatedHeld(t, c, rule.Name)
		})
	}
}

// latchOf returns the latch that the chart configures for the manager.
func latchOf(t *testing.T, c *testenv.Cluster) admission.Latch {
	t.Helper()
	var manager appsv1.Deployment
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "readygate-manager"}, &manager); err != nil {
		t.Fatal(err)
	}
	for _, arg := range manager.Spec.Template.Spec.Containers[0].Args {
		var image string
		if n, _ := fmt.Sscanf(arg, "--latch-image=%s", &image); n == 1 {
			return admission.Latch{Image: image}
		}
	}
	t.Fatal("the manager has no latch")
	return admission.Latch{}
}

// wantUpdates waits until a token of the manager can, or cannot, update the policies.
func wantUpdates(t *testing.T, c *testenv.Cluster, may bool) {
	t.Helper()
	config := *c.Config
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = nil, nil, "", ""
	config.BearerToken = c.Token(t, namespace, "readygate-manager", nil)
	as, err := mutatingpolicy.NewClient(&config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, fmt.Sprintf("updates of policies by the manager are allowed: %v", may), func(ctx context.Context) error {
		for _, obj := range []client.Object{policyForNodesOf(t, c), policyForPodsOf(t, c)} {
			if err := as.Update(ctx, obj, client.DryRunAll); (err == nil) != may || !may && !apierrors.IsForbidden(err) {
				return fmt.Errorf("updating %s: %w", obj.GetName(), err)
			}
		}
		return nil
	})
}
