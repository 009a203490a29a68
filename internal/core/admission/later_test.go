package admission_test

import (
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

func TestLabelsThatAKubeletMayNotSet(t *testing.T) {
	for key, later := range map[string]bool{
		"role":                                         false,
		"example.com/pool":                             false,
		"kubernetes.io.example.com/a":                  false,
		"mykubernetes.io/a":                            false,
		"kubernetes.io/os":                             false,
		"kubernetes.io/arch":                           false,
		"kubernetes.io/hostname":                       false,
		"beta.kubernetes.io/os":                        false,
		"topology.kubernetes.io/zone":                  false,
		"topology.kubernetes.io/region":                false,
		"failure-domain.beta.kubernetes.io/zone":       false,
		"node.kubernetes.io/instance-type":             false,
		"node.kubernetes.io/anything":                  false,
		"a.node.kubernetes.io/b":                       false,
		"kubelet.kubernetes.io/anything":               false,
		"a.kubelet.kubernetes.io/b":                    false,
		"node-role.kubernetes.io/worker":               true,
		"node-role.kubernetes.io/control-plane":        true,
		"node-restriction.kubernetes.io/pool":          true,
		"a.node-restriction.kubernetes.io/pool":        true,
		"node-restriction.kubernetes.io.example/b":     false,
		"kubernetes.io/role":                           true,
		"topology.kubernetes.io/rack":                  true,
		"mynode.kubernetes.io/a":                       true,
		"k8s.io/a":                                     true,
		"a.k8s.io/b":                                   true,
		"readiness.k8s.io/a":                           true,
		"node.cluster.x-k8s.io/pool":                   false,
		"cloud.google.com/gke-nodepool":                false,
		"eks.amazonaws.com/nodegroup":                  false,
		"kubernetes.azure.com/mode":                    false,
		"node.kubernetes.io.node-role.kubernetes.io/a": true,
	} {
		t.Run(key, func(t *testing.T) {
			var want []string
			if later {
				want = []string{key}
			}
			wantEqual(t, "set later", labelsSetLater(rule("r", selects(key, "a"))), want)
		})
	}
}

func labelsSetLater(r *v1alpha1.NodeReadinessRule) []string {
	return admission.LabelsSetLater(noderule.NewRulebook(rules(r)).Rule(r.UID))
}

func TestLabelsSetLaterListsOnlyRequiredLabels(t *testing.T) {
	const worker, edge, own = "node-role.kubernetes.io/worker", "node-role.kubernetes.io/edge", "example.com/pool"
	cases := map[string]struct {
		rule *v1alpha1.NodeReadinessRule
		want []string
	}{
		"matchLabels":              {rule: rule("r", selects(worker, "")), want: []string{worker}},
		"In":                       {rule: rule("r", selectsBy(expression(worker, "In", "a", "b"))), want: []string{worker}},
		"Exists":                   {rule: rule("r", selectsBy(expression(worker, "Exists"))), want: []string{worker}},
		"NotIn":                    {rule: rule("r", selectsBy(expression(worker, "NotIn", "a")))},
		"DoesNotExist":             {rule: rule("r", selectsBy(expression(worker, "DoesNotExist")))},
		"one of two":               {rule: rule("r", selectsBy(expression(own, "Exists"), expression(worker, "Exists"))), want: []string{worker}},
		"each once, in order":      {rule: rule("r", selectsBy(expression(worker, "Exists"), expression(edge, "Exists"), expression(worker, "NotIn", "a"), expression(worker, "In", "b"))), want: []string{edge, worker}},
		"a rule that is not valid": {rule: rule("r", selectsBy())},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantEqual(t, "set later", labelsSetLater(c.rule), c.want) })
	}
}
