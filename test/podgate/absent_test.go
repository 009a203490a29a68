package podgate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// A cluster may have only the node half: the manager works, and starts the pod half when its
// CRD is created. This manager has no latch image.
func TestTheManagerWorksWithoutRulesForPods(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	definition := removeDefinition(t, c)
	if err := install(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	manage(t, c, "")
	nodeRule := testenv.Rule("nodes")
	c.Create(t, nodeRule)
	c.Create(t, testenv.Node("held", testenv.Pool(nodeRule.Name)))
	c.EventuallyNode(t, "held", "held", func(n *corev1.Node) bool { return testenv.HasTaint(n, nodeRule.Spec.Taint.Key) })

	c.Create(t, definition)
	if err := served(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, c)
	rule, holds := s.rule("web"), s.rule("holds", startHold)
	s.enforce(rule, holds)
	lone := s.wantRule(rule, "not enforced where no agent lives, pods or not", noAgent)
	if message := meta.FindStatusCondition(lone.Status.Conditions, v1alpha1.ConditionEnforced).Message; !strings.Contains(message, "no podgate agent is live on any node") || !strings.Contains(message, "podgate.enabled=true") {
		t.Errorf("without agents the message of the rule is %q", message)
	}
	s.startAgent()
	s.wantRule(rule, "enforced", enforced)
	s.wantRule(holds, "not held", is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNoLatchImage))
	pod, unheld := s.pod("web"), s.pod("holds")
	if gates, _ := gatesOf(unheld); !slices.Equal(gates, []string{holds.Spec.Gate}) || len(unheld.Spec.InitContainers) > 0 {
		t.Errorf("without a latch a pod has the gates %v and the init containers %v", gates, unheld.Spec.InitContainers)
	}
	s.says(pod, corev1.ConditionTrue)
	s.sandbox(pod, "127.0.13.1", longAgo())
	s.wantGate(pod, rule.Spec.Gate, allReady)
	s.wantRule(rule, "open", counts(v1alpha1.PodSummary{Gated: 1, Open: 1}))
}

// removeDefinition deletes the CRD of PodReadinessRule, and returns it.
func removeDefinition(t *testing.T, c *testenv.Cluster) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := definitionOf(t)
	if err := c.Client.Delete(t.Context(), definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the CRD to be gone", func(context.Context) error {
		kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "PodReadinessRule"}
		if _, err := clientOf(t, c.Config).RESTMapper().RESTMapping(kind, v1alpha1.GroupVersion.Version); !meta.IsNoMatchError(err) {
			return fmt.Errorf("still there (%v)", err)
		}
		return nil
	})
	return definition
}

// definitionOf returns the CRD of PodReadinessRule.
func definitionOf(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == v1alpha1.CRDName })
	if i < 0 {
		t.Fatalf("there is no %s", v1alpha1.CRDName)
	}
	return definitions[i]
}
