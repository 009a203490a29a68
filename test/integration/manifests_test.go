package integration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// TestManifestsOfTheGuides runs both CNI guides with their unchanged rules. The rules have the same name and taint, so
// the guides run one after the other. No other test uses the label node-role.kubernetes.io/worker.
func TestManifestsOfTheGuides(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	for _, guide := range []struct{ name, file, condition string }{
		{"sidecar", "sidecar/network-readiness-rule.yaml", "network.k8s.io/CalicoReady"},
		{"daemonset", "network-readiness-rule.yaml", "projectcalico.org/CalicoReady"},
	} {
		t.Run(guide.name, func(t *testing.T) {
			file := filepath.Join(testenv.Root(), "examples", "cni-readiness", guide.file)
			followGuide(t, c, k, file, guide.condition, id+"-"+guide.name)
		})
	}
}

// followGuide runs the guide's section "Verification": a new node has the taint until the condition is True, and none
// after that.
func followGuide(t *testing.T, c *testenv.Cluster, k *testenv.Kubectl, file, condition, node string) {
	const name = "network-readiness-rule"
	k.Run(t, "apply", "-f", file)
	remove(t, c, name)
	k.Run(t, "wait", "--timeout=90s", "--for=condition=Enforced", "nrr/"+name)
	rule := ruleOf(t, c, name)

	c.Create(t, testenv.Node(node, map[string]string{"node-role.kubernetes.io/worker": ""}))
	c.EventuallyNode(t, node, "held", carries(rule))
	if taints := k.Run(t, "describe", "node", node); !strings.Contains(taints, "readiness.k8s.io/NetworkReady=pending:NoSchedule") {
		t.Errorf("kubectl does not show the taint of the guide:\n%s", taints)
	}
	c.SetCondition(t, node, condition, corev1.ConditionFalse)
	c.EventuallyRule(t, name, "the reported condition in its status", func(r *v1alpha1.NodeReadinessRule) bool {
		return len(r.Status.NodeEvaluations) == 1 && r.Status.NodeEvaluations[0].ConditionResults[0].CurrentStatus == corev1.ConditionFalse
	})
	c.EventuallyNode(t, node, "still held", carries(rule))
	c.SetCondition(t, node, condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node, "released", func(n *corev1.Node) bool {
		return free(rule)(n) && n.Annotations[completedKey(rule)] == `{"rule-name":"network-readiness-rule"}`
	})

	k.Run(t, "delete", "-f", file, "--timeout=90s")
	c.EventuallyNode(t, node, "without taint and records of the rule", func(n *corev1.Node) bool {
		_, completed := n.Annotations[completedKey(rule)]
		return free(rule)(n) && !completed
	})
}

// TestManifestsOfUsersApplyUnchanged: typical manifests of users pass kubectl's strict validation, are stored unchanged,
// and are accepted.
func TestManifestsOfUsersApplyUnchanged(t *testing.T) {
	for name, manifest := range wild {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			k := c.Kubectl(t)
			const file = "rule.yaml"
			if err := os.WriteFile(filepath.Join(k.Home, file), []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			var sent unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(manifest), &sent.Object); err != nil {
				t.Fatal(err)
			}
			remove(t, c, sent.GetName())
			if out := k.Run(t, "apply", "-f", file); !strings.HasSuffix(out, "created\n") {
				t.Errorf("kubectl prints %q", out)
			}
			c.EventuallyRule(t, sent.GetName(), "accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
			if out := k.Run(t, "apply", "-f", file); !strings.HasSuffix(out, "unchanged\n") {
				t.Errorf("kubectl prints %q the second time", out)
			}
			k.Run(t, "apply", "--server-side", "--force-conflicts", "-f", file)
			kubectlReplace(t, k, file)
			wantSpec(t, c, &sent)
		})
	}
}

// kubectlReplace runs kubectl replace until it succeeds. kubectl reads and then writes without a retry, and the manager
// may write the status in between.
func kubectlReplace(t testing.TB, k *testenv.Kubectl, file string) {
	t.Helper()
	isConflict := func(err error) bool { return strings.Contains(err.Error(), "Error from server (Conflict)") }
	err := retry.OnError(retry.DefaultRetry, isConflict, func() error {
		_, err := k.Try(t.Context(), "replace", "-f", file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantSpec checks that the stored spec equals the manifest: no field is defaulted or dropped.
func wantSpec(t *testing.T, c *testenv.Cluster, sent *unstructured.Unstructured) {
	t.Helper()
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeReadinessRule"))
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(sent), stored); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(stored.Object["spec"], sent.Object["spec"]) {
		t.Errorf("sent %v, stored %v", sent.Object["spec"], stored.Object["spec"])
	}
}

// TestManifestsOfUsersUseEveryField: together the manifests use every field and enum value.
func TestManifestsOfUsersUseEveryField(t *testing.T) {
	var all []string
	for _, manifest := range wild {
		data, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		var object any
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, leaves("", object)...)
	}
	for _, want := range everyLeaf {
		if !slices.Contains(all, want) {
			t.Errorf("no manifest uses %s", want)
		}
	}
}

// leaves returns the paths of an object with their values, as in ".spec.dryRun=true". It leaves out values that users
// choose freely.
func leaves(path string, value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			found = append(found, leaves(path+"."+key, field)...)
		}
	case []any:
		for _, item := range value {
			found = append(found, leaves(path+"[]", item)...)
		}
	default:
		text, _ := json.Marshal(value)
		found = append(found, path, path+"="+strings.Trim(string(text), `"`))
	}
	return found
}
