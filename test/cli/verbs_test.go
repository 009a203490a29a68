package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/testenv"
)

// scene is a rule that holds one node and has released another. Both are named after the test.
func scene(t *testing.T, c *testenv.Cluster) (rule, held, released string) {
	t.Helper()
	rule = testenv.NameOf(t)
	held, released = rule+"-held", rule+"-free"
	c.Create(t, testenv.Rule(rule))
	c.EventuallyRule(t, rule, "is accepted", func(r *v1alpha1.NodeReadinessRule) bool { return r.Status.ObservedGeneration == r.Generation })
	c.CreateNode(t, testenv.Node(held, testenv.Pool(rule)), corev1.ConditionFalse)
	c.CreateNode(t, testenv.Node(released, testenv.Pool(rule)), corev1.ConditionTrue)
	c.EventuallyRule(t, rule, "holds one of two", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary != nil && r.Status.Summary.Held == 1 && r.Status.Summary.Selected == 2
	})
	return rule, held, released
}

// Permission to read nodes and rules is enough.
func TestEveryVerbWithTheLeastRights(t *testing.T) {
	c := cluster(t)
	rule, held, released := scene(t, c)
	u := reader(t, c, "nodes", "nodereadinessrules")

	t.Run("status", func(t *testing.T) {
		u.readiness(t, "status").expect(t, 0, "STANDING", rule, "readiness.k8s.io/"+rule, "Enforced")
		var got struct{ Rules []view.Rule }
		u.readiness(t, "status", "-o", "json").parse(t, &got)
		i := slices.IndexFunc(got.Rules, func(r view.Rule) bool { return r.Name == rule })
		if i < 0 || got.Rules[i].Count.Selected != 2 || got.Rules[i].Count.Held != 1 || got.Rules[i].Count.Released != 1 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("nodes", func(t *testing.T) {
		all := u.readiness(t, "nodes", "-l", "pool="+rule, "-o", "wide")
		all.expect(t, 0, "OTHER TAINTS", held, released, testenv.Condition+" is False")
		if strings.Index(all.stdout, held) > strings.Index(all.stdout, released) {
			t.Errorf("held nodes are not first:\n%s", all.stdout)
		}
		var got struct{ Nodes []view.Node }
		u.readiness(t, "nodes", "-l", "pool="+rule, "--held", "-o", "json").parse(t, &got)
		if len(got.Nodes) != 1 || got.Nodes[0].Name != held || got.Nodes[0].State != noderule.Held {
			t.Errorf("got %+v", got)
		}
		u.readiness(t, "nodes", "-l", "pool=missing").expect(t, 0, "No node matches the selector")
	})
	t.Run("why", func(t *testing.T) {
		u.readiness(t, "why", held).expect(t, 0, held+" is held", "by rule "+rule, testenv.Condition+" is False, must be True", "What to do", "Could not be read", "events of the node", "permission denied")
		u.readiness(t, "why", "node/"+released).expect(t, 0, released+" is released")
		u.readiness(t, "why", "missing").expect(t, 1, `error: there is no node "missing"`, "kubectl get nodes")
		var explanation view.Explanation
		u.readiness(t, "why", held, "-o", "json").parse(t, &explanation)
		if explanation.State != noderule.Held || len(explanation.Chapters) != 1 || len(explanation.Unseen) != 1 {
			t.Errorf("got %+v", explanation)
		}
		if admin := admin(t, c).readiness(t, "why", held); !strings.Contains(admin.stdout, "Events") || strings.Contains(admin.stdout, "Could not be read") {
			t.Errorf("a user who may read events does not see them:\n%s", admin.stdout)
		}
	})
	t.Run("simulate", func(t *testing.T) {
		other := filepath.Join(u.home, "other.yaml")
		if err := os.WriteFile(other, []byte(manifest("other-"+rule, rule)), 0o600); err != nil {
			t.Fatal(err)
		}
		u.readiness(t, "simulate", "-f", other).expect(t, 0, "other-"+rule, held, released, "EVICTIONS", "from 2 nodes", "example.com/Other is not reported, must be True")
	})
	t.Run("version", func(t *testing.T) {
		u.readiness(t, "version").expect(t, 0, "Client: dev", "Manager: could not be read", "permission denied")
		admin(t, c).readiness(t, "version").expect(t, 0, "Manager: could not be read: there is no Deployment readygate-manager in namespace readygate-system", "--namespace")
		labels := map[string]string{"app.kubernetes.io/version": "v1.2.3"}
		c.Create(t, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "readygate-manager", Namespace: "default", Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager"}}}},
			},
		})
		admin(t, c).readiness(t, "version", "--namespace", "default").expect(t, 0, "Manager: v1.2.3")
	})
	t.Run("completion of nodes", func(t *testing.T) {
		u.readiness(t, "__complete", "why", "").expect(t, 0, held+"\n", released+"\n")
	})
}

// manifest is a rule that evicts from the nodes of a pool until example.com/Other is True.
func manifest(name, pool string) string {
	return `apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata: {name: ` + name + `}
spec:
  conditions: [{type: example.com/Other, requiredStatus: "True"}]
  taint: {key: readiness.k8s.io/Other, effect: NoExecute}
  enforcementMode: continuous
  nodeSelector: {matchLabels: {pool: ` + pool + `}}
`
}
