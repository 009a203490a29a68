package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

func TestKubectlGetShowsTheStateOfARule(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	c.Create(t, testenv.Rule(id))
	preview := testenv.Rule(id+"-preview", testenv.DryRun, testenv.BootstrapOnly)
	c.Create(t, preview)
	for _, node := range []string{id + "-1", id + "-2"} {
		c.Create(t, testenv.Node(node, testenv.Pool(id)))
	}
	c.SetCondition(t, id+"-2", testenv.Condition, corev1.ConditionTrue)
	c.EventuallyRule(t, id, "one node held", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == 1 && r.Status.Summary.Selected == 2
	})
	c.EventuallyRule(t, preview.Name, "in dry run", testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonDryRun))

	lines := strings.Split(k.Run(t, "get", "nrr", id, preview.Name), "\n")
	want := [][]string{
		{"NAME", "MODE", "TAINT", "EFFECT", "DRYRUN", "HELD", "NODES", "ENFORCED", "AGE"},
		{id, "continuous", testenv.TaintKey(id), "NoSchedule", "", "1", "2", "Enforced"},
		{preview.Name, "bootstrap-only", testenv.TaintKey(preview.Name), "NoSchedule", "true", "0", "0", "DryRun"},
	}
	for row := range want {
		got := cells(lines[0], lines[row])
		if len(got) != len(want[0]) || !slices.Equal(got[:len(want[row])], want[row]) {
			t.Errorf("want %q, got %q", want[row], got)
		}
	}
}

// cells returns the cells of a line of kubectl's table, including empty cells.
func cells(header, line string) []string {
	var starts []int
	for i := range header {
		if header[i] != ' ' && (i == 0 || header[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	var result []string
	for i, start := range starts {
		end := len(line)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		result = append(result, strings.TrimSpace(line[start:end]))
	}
	return result
}

func TestKubectlWaitsForConditions(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	c.Create(t, testenv.Rule(id))
	c.Create(t, testenv.Node(id, testenv.Pool(id)))
	for _, arg := range []string{"condition=Accepted", "condition=Enforced", "jsonpath={.status.summary.held}=1"} {
		k.Run(t, "wait", "--timeout=90s", "--for="+arg, "nrr/"+id)
	}
	k.Run(t, "delete", "nrr", id, "--timeout=90s")
	wantNoRule(t, c, id)
}

func TestKubectlSelectsByField(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	plain, other := id+"-plain", id+"-other"
	c.Create(t, testenv.Rule(plain))
	c.Create(t, testenv.Rule(other, testenv.BootstrapOnly, testenv.DryRun))
	for selector, want := range map[string]string{
		"spec.taint.key=" + testenv.TaintKey(plain): plain,
		"spec.taint.key=" + testenv.TaintKey(other): other,
		"spec.enforcementMode=continuous":           plain,
		"spec.enforcementMode=bootstrap-only":       other,
		"spec.dryRun!=true":                         plain,
		"spec.dryRun=true":                          other,
	} {
		var mine []string
		for _, name := range strings.Fields(k.Run(t, "get", "nrr", "--field-selector", selector, "-o", "name")) {
			if _, name, _ := strings.Cut(name, "/"); name == plain || name == other {
				mine = append(mine, name)
			}
		}
		if !slices.Equal(mine, []string{want}) {
			t.Errorf("%s: want %s, got %v", selector, want, mine)
		}
	}
}

func TestKubectlExplainsEveryField(t *testing.T) {
	t.Parallel()
	k := cluster(t).Kubectl(t)
	for field, words := range map[string][]string{
		"nrr":                              {"keeps a taint on the selected nodes until", "enforcementMode: bootstrap-only"},
		"nrr.spec":                         {"are immutable", "conditions", "nodeSelector", "-required-"},
		"nrr.spec.conditions":              {"1 to 32", "Immutable", "requiredStatus"},
		"nrr.spec.conditionPolicy":         {"Absent means allOf", "ENUM: allOf anyOf"},
		"nrr.spec.enforcementMode":         {"first release is final", "ENUM: bootstrap-only continuous"},
		"nrr.spec.taint.key":               {"readiness.k8s.io/NetworkReady", "startup-taint.cluster-autoscaler.kubernetes.io"},
		"nrr.spec.taint.effect":            {"NoExecute also evicts", "Prefer NoSchedule"},
		"nrr.spec.nodeSelector":            {"must not be empty", "kubernetes.io/os: linux"},
		"nrr.spec.dryRun":                  {"changes no node", "Absent means false"},
		"nrr.status.summary":               {"held", "number of selected nodes that the rule"},
		"nrr.status.conditions":            {"Accepted", "Enforced"},
		"nrr.status.dryRunResults.summary": {"in one sentence"},
	} {
		testenv.Eventually(t, "kubectl explain "+field, func(ctx context.Context) error { // the API server publishes the schema with a delay
			out, err := k.Try(ctx, "explain", field)
			if err != nil {
				return err
			}
			text := strings.Join(strings.Fields(out), " ")
			for _, word := range words {
				if !strings.Contains(text, word) {
					return fmt.Errorf("%q is not in\n%s", word, out)
				}
			}
			return nil
		})
	}
}

func TestKubectlDescribeShowsEvents(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	bad := testenv.Rule(id+"-bad", func(r *v1alpha1.NodeReadinessRule) { r.Spec.NodeSelector.MatchLabels["node pool"] = "a" })
	c.Create(t, bad)
	node := testenv.Node(id, testenv.Pool(id))
	c.CreateNode(t, node, "")
	eventOf(t, c, node, v1alpha1.EventTaintAdded)
	eventOf(t, c, bad, v1alpha1.EventInvalid)

	wantLine(t, k.Run(t, "describe", "node", id), "Normal", v1alpha1.EventTaintAdded, v1alpha1.Reporter, testenv.TaintKey(id), "rule '"+id+"'")
	wantLine(t, k.Run(t, "describe", "nrr", bad.Name), "Warning", v1alpha1.EventInvalid, v1alpha1.Reporter, "spec.nodeSelector.matchLabels")
	wantLine(t, k.Run(t, "events", "--for", "node/"+id), "Normal", v1alpha1.EventTaintAdded, testenv.TaintKey(id))
}

// wantLine checks that one line contains all the words.
func wantLine(t *testing.T, out string, words ...string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return
		}
	}
	t.Errorf("no line has all of %q:\n%s", words, out)
}

// TestKubectlHasTextForEveryField checks all definitions: each field has a description, which starts with its JSON
// name.
func TestKubectlHasTextForEveryField(t *testing.T) {
	names, err := crds.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := crds.Files.ReadFile(name.Name())
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			root := version.Schema.OpenAPIV3Schema
			for _, field := range []string{"apiVersion", "kind", "metadata"} { // fields of Kubernetes
				delete(root.Properties, field)
			}
			described(t, crd.Spec.Names.Kind, root)
		}
	}
}

func described(t *testing.T, path string, schema *apiextensionsv1.JSONSchemaProps) {
	if schema.Items != nil {
		described(t, path+"[]", schema.Items.Schema)
	}
	for name, field := range schema.Properties {
		if first, _, _ := strings.Cut(field.Description, " "); first != name {
			t.Errorf("the description of %s.%s does not start with its name: %q", path, name, field.Description)
		}
		if len(strings.Fields(field.Description)) < 4 {
			t.Errorf("the description of %s.%s has less than four words: %q", path, name, field.Description)
		}
		described(t, path+"."+name, &field)
	}
}
