package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// The plugin prints the policies that a manager with --manage-policies writes, for rules of all kinds.
func TestPolicyPrintsWhatTheManagerWrites(t *testing.T) {
	c := cluster(t)
	c.NeedMutatingPolicies(t)
	id := testenv.NameOf(t)
	for name, change := range map[string]func(*v1alpha1.NodeReadinessRule){
		"plain":   func(*v1alpha1.NodeReadinessRule) {},
		"once":    testenv.BootstrapOnly,
		"preview": testenv.DryRun,
		"evicts":  func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectNoExecute },
		"limited": func(r *v1alpha1.NodeReadinessRule) { most := intstr.FromInt32(1); r.Spec.MaxUnavailable = &most },
	} {
		c.Create(t, testenv.Rule(id+"-"+name, change))
	}
	if err := c.Apply(t.Context(), fmt.Sprintf("apiVersion: readygate.dev/v1alpha1\nkind: PodReadinessRule\nmetadata: {name: %s}\nspec: {components: [{name: a, reach: {}}]}\n", id)); err != nil {
		t.Fatal(err)
	}
	u := admin(t, c)
	want := map[string]func(*admissionv1.MutatingAdmissionPolicySpec) admission.Compiled{admission.TaintNewNodesName: admission.ReadTaintNewNodes, admission.GateNewPodsName: admission.ReadGateNewPods(admission.Latch{})}
	rules := map[string]int{admission.TaintNewNodesName: 4, admission.GateNewPodsName: 1}
	testenv.Eventually(t, "the plugin to print what the manager wrote", func(ctx context.Context) error {
		printed := u.readiness(t, "policy", "--latch-image=")
		documents := strings.Split(printed.stdout, "---\n")
		if printed.code != 0 || len(documents) != len(want) {
			return fmt.Errorf("code %d: %s%s", printed.code, printed.stdout, printed.stderr)
		}
		for _, document := range documents {
			var is, stored admissionv1.MutatingAdmissionPolicy
			if err := yaml.UnmarshalStrict([]byte(document), &is); err != nil {
				return err
			}
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(&is), &stored); err != nil {
				return err
			}
			if !equality.Semantic.DeepEqual(is.Spec, stored.Spec) || !equality.Semantic.DeepEqual(is.Labels, stored.Labels) {
				return fmt.Errorf("%s: printed\n%v\nstored\n%v", is.Name, is, stored)
			}
			if found := len(want[is.Name](&is.Spec).Texts()); found < rules[is.Name] {
				return fmt.Errorf("%s has %d rules", is.Name, found)
			}
		}
		return nil
	})
	u.run(t, "sh", "-c", "kubectl readiness policy --latch-image= | kubectl diff -f -").expect(t, 0)
}

// Without the manager's Deployment the latch image is unknown, and the error names the flag.
func TestPolicyNamesTheFlagOfTheLatch(t *testing.T) {
	c := cluster(t)
	id := testenv.NameOf(t)
	if err := c.Apply(t.Context(), fmt.Sprintf("apiVersion: readygate.dev/v1alpha1\nkind: PodReadinessRule\nmetadata: {name: %s}\nspec: {components: [{name: a, reach: {}}]}\n", id)); err != nil {
		t.Fatal(err)
	}
	admin(t, c).readiness(t, "policy").expect(t, 1, "Deployment readygate-manager", "--latch-image")
}
