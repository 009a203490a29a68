package integration_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// agentSet returns a DaemonSet with these labels. Its pods are not started.
func agentSet(namespace, name string, labels map[string]string, tolerations ...corev1.Toleration) *appsv1.DaemonSet {
	app := map[string]string{"app": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}, Tolerations: tolerations},
			},
		},
	}
}

// tolerationsOf counts how often the DaemonSet tolerates the taint of each rule.
func tolerationsOf(ds *appsv1.DaemonSet) map[string]int {
	count := map[string]int{}
	for _, toleration := range ds.Spec.Template.Spec.Tolerations {
		count[toleration.Key]++
	}
	return count
}

// tolerating sets spec.tolerations of a rule.
func tolerating(daemonSets, namespaces *v1alpha1.LabelSelector) func(*v1alpha1.NodeReadinessRule) {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.Tolerations = &v1alpha1.DaemonSetTolerations{DaemonSetSelector: daemonSets, NamespaceSelector: namespaces}
	}
}

func matching(key, value string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)}}
}

func matchingBy(key string, operator metav1.LabelSelectorOperator, values ...v1alpha1.LabelValue) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestDaemonSetsThatARuleNamesTolerateItsTaint(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	c.NeedMutatingPolicies(t)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}}
	c.Create(t, home)
	network := testenv.Rule(id+"-network", tolerating(matching("component", id), nil))
	storage := testenv.Rule(id+"-storage", tolerating(matchingBy("component", "In", v1alpha1.LabelValue(id), "other"), matching("kubernetes.io/metadata.name", home.Name)))
	preview := testenv.Rule(id+"-preview", tolerating(matching("component", id), nil), testenv.DryRun)
	elsewhere := testenv.Rule(id+"-elsewhere", tolerating(matching("component", id), matchingBy("kubernetes.io/metadata.name", "NotIn", v1alpha1.LabelValue(home.Name))))
	unlabelled := testenv.Rule(id+"-unlabelled", tolerating(matchingBy("component", "DoesNotExist"), matching("kubernetes.io/metadata.name", home.Name)))
	for _, rule := range []*v1alpha1.NodeReadinessRule{network, storage, preview, elsewhere, unlabelled} {
		c.Create(t, rule)
	}
	labels := map[string]string{"component": id}
	both := map[string]int{network.Spec.Taint.Key: 1, storage.Spec.Taint.Key: 1}
	testenv.Eventually(t, "a DaemonSet that tolerates both taints", func(ctx context.Context) error {
		ds := agentSet(home.Name, "probe", labels)
		if err := c.Client.Create(ctx, ds, client.DryRunAll); err != nil {
			return err
		}
		if got := tolerationsOf(ds); !maps.Equal(got, both) {
			return fmt.Errorf("tolerates %v, want %v", got, both)
		}
		return nil
	})

	existing := corev1.Toleration{Key: "example.com/other", Operator: corev1.TolerationOpExists}
	anything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	exact := corev1.Toleration{Key: network.Spec.Taint.Key, Value: network.Spec.Taint.Value, Effect: network.Spec.Taint.Effect}
	wrong := corev1.Toleration{Key: network.Spec.Taint.Key, Value: "something-else"}
	for name, c2 := range map[string]struct {
		ds   *appsv1.DaemonSet
		want map[string]int
	}{
		"keeps-others": {agentSet(home.Name, "keeps-others", labels, existing), map[string]int{existing.Key: 1, network.Spec.Taint.Key: 1, storage.Spec.Taint.Key: 1}},
		"anything":     {agentSet(home.Name, "anything", labels, anything), map[string]int{"": 1}},
		"exact":        {agentSet(home.Name, "exact", labels, exact), both},
		"wrong-value":  {agentSet(home.Name, "wrong-value", labels, wrong), map[string]int{network.Spec.Taint.Key: 2, storage.Spec.Taint.Key: 1}},
		"other-label":  {agentSet(home.Name, "other-label", map[string]string{"component": "x"}), map[string]int{}},
		"no-label":     {agentSet(home.Name, "no-label", nil), map[string]int{unlabelled.Spec.Taint.Key: 1}},
		"other-space":  {agentSet("default", id, labels), map[string]int{network.Spec.Taint.Key: 1, elsewhere.Spec.Taint.Key: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Create(t, c2.ds)
			if got := tolerationsOf(c2.ds); !maps.Equal(got, c2.want) {
				t.Errorf("tolerates %v, want %v", got, c2.want)
			}
			generation := c2.ds.Generation
			c.Patch(t, c2.ds, func() { c2.ds.Annotations = map[string]string{"example.com/touched": "yes"} })
			if got := tolerationsOf(c2.ds); !maps.Equal(got, c2.want) || c2.ds.Generation != generation {
				t.Errorf("after another change: tolerates %v, generation %d, want %v and %d", got, c2.ds.Generation, c2.want, generation)
			}
		})
	}
}

// A DaemonSet that is older than the rule gets the tolerations with its next change. Until then the rule reports it as
// blocked.
func TestAnExistingDaemonSetGetsTolerationsWithItsNextChange(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	ds := agentSet("default", id, map[string]string{"component": id})
	ds.Annotations = map[string]string{"readygate.dev/reports": id + "/Ready"}
	c.Create(t, ds)
	rule := testenv.Rule(id, tolerating(matching("component", id), nil), func(r *v1alpha1.NodeReadinessRule) { r.Spec.Conditions[0].Type = id + "/Ready" })
	c.Create(t, rule)
	c.EventuallyRule(t, id, "blocked DaemonSet reported", testenv.Is(v1alpha1.ConditionReportersTolerated, metav1.ConditionFalse, v1alpha1.ReasonDaemonSetBlocked))
	testenv.Eventually(t, "the toleration", func(ctx context.Context) error {
		base := ds.DeepCopy()
		ds.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": metav1.Now().String()}
		if err := c.Client.Patch(ctx, ds, client.MergeFrom(base)); err != nil {
			return err
		}
		if tolerationsOf(ds)[rule.Spec.Taint.Key] != 1 {
			return fmt.Errorf("tolerates %v", ds.Spec.Template.Spec.Tolerations)
		}
		return nil
	})
	c.EventuallyRule(t, id, "reporters tolerate the taint", testenv.Is(v1alpha1.ConditionReportersTolerated, metav1.ConditionTrue, v1alpha1.ReasonTolerated))
}
