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

// TestManifestsOfTheGuides plays both CNI guides with their rules word for word. They have
// the same name and taint, so one after the other; no other test uses the label
// node-role.kubernetes.io/worker.
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
			playGuide(t, c, k, file, guide.condition, id+"-"+guide.name)
		})
	}
}

// playGuide is the guide's section "Verification": a new node has the taint until the
// condition is True, and stays free then.
func playGuide(t *testing.T, c *testenv.Cluster, k *testenv.Kubectl, file, condition, node string) {
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
	c.EventuallyRule(t, name, "aware of the report", func(r *v1alpha1.NodeReadinessRule) bool {
		return len(r.Status.NodeEvaluations) == 1 && r.Status.NodeEvaluations[0].ConditionResults[0].CurrentStatus == corev1.ConditionFalse
	})
	c.EventuallyNode(t, node, "still held", carries(rule))
	c.SetCondition(t, node, condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node, "released for good", func(n *corev1.Node) bool {
		return free(rule)(n) && n.Annotations[completedKey(rule)] == `{"rule-name":"network-readiness-rule"}`
	})

	k.Run(t, "delete", "-f", file, "--timeout=90s")
	c.EventuallyNode(t, node, "without a trace of the rule", func(n *corev1.Node) bool {
		_, completed := n.Annotations[completedKey(rule)]
		return free(rule)(n) && !completed
	})
}

// TestManifestsOfUsersApplyUnchanged: what users have written for this API is
// accepted by kubectl's strict validation, comes back as it was sent, and is accepted.
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
				t.Errorf("kubectl says %q", out)
			}
			c.EventuallyRule(t, sent.GetName(), "accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
			if out := k.Run(t, "apply", "-f", file); !strings.HasSuffix(out, "unchanged\n") {
				t.Errorf("kubectl says %q the second time", out)
			}
			k.Run(t, "apply", "--server-side", "--force-conflicts", "-f", file)
			kubectlReplace(t, k, file)
			wantSpec(t, c, &sent)
		})
	}
}

// kubectlReplace runs kubectl replace, which must succeed. It reads and writes and does not try again by
// itself, and the manager may write the status in between.
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

// wantSpec checks that the stored spec is what was sent: nothing defaulted, nothing dropped.
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

// TestManifestsOfUsersUseEveryField: together they speak of all that exists.
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
			t.Errorf("no manifest says %s", want)
		}
	}
}

// leaves are the paths of an object with their values, as in ".spec.dryRun=true"; the value
// is left out where users choose it freely.
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
