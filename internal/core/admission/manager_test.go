package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// managed is a node as the manager finds it.
func managed(options ...nodeOption) *corev1.Node {
	base := []nodeOption{
		tainted(notReady+":NoSchedule", hold, "example.com/gpu=yes:NoExecute"),
		annotated("example.com/a", "b"), annotated(holdKey("network"), "{}"), completed("storage"),
	}
	return worker(append(base, options...)...)
}

func TestTheManagerMayWriteTaintsAndAnnotationsOfRulesOnly(t *testing.T) {
	unset := func(key string) nodeOption { return func(n *corev1.Node) { delete(n.Annotations, key) } }
	retained := func(keep ...int) nodeOption {
		return func(n *corev1.Node) {
			taints := n.Spec.Taints
			n.Spec.Taints = nil
			for _, i := range keep {
				n.Spec.Taints = append(n.Spec.Taints, taints[i])
			}
		}
	}
	const annotations, taints = "annotations that are not Readygate's", "taints that no rule may manage"
	cases := map[string]struct {
		change  nodeOption
		refused string // what may not be changed
	}{
		"nothing":                           {change: func(*corev1.Node) {}},
		"holding a node":                    {change: tainted("readiness.k8s.io/StorageReady:NoSchedule")},
		"with a taint for autoscalers":      {change: tainted("startup-taint.cluster-autoscaler.kubernetes.io/network:NoSchedule")},
		"releasing a node":                  {change: retained(0, 2)},
		"recording a hold":                  {change: annotated(holdKey("storage"), "{}")},
		"changing a record":                 {change: annotated(holdKey("network"), "{ }")},
		"deleting a record":                 {change: unset(holdKey("network"))},
		"recording a completion":            {change: annotated(completedKey("network"), "{}")},
		"deleting one":                      {change: unset(completedKey("storage"))},
		"deleting all taints":               {change: retained(), refused: taints},
		"deleting a taint of others":        {change: retained(0, 1), refused: taints},
		"the order of taints of others":     {change: retained(2, 1, 0), refused: taints},
		"where its own taint stands":        {change: retained(1, 0, 2)},
		"adding a taint of others":          {change: tainted("node.kubernetes.io/out-of-service:NoExecute"), refused: taints},
		"one whose key looks alike":         {change: tainted("my.readiness.k8s.io/A:NoSchedule"), refused: taints},
		"one whose key is the prefix":       {change: tainted("readiness.k8s.io:NoSchedule"), refused: taints},
		"the value of a taint of others":    {change: func(n *corev1.Node) { n.Spec.Taints[2].Value = "no" }, refused: taints},
		"its effect":                        {change: func(n *corev1.Node) { n.Spec.Taints[2].Effect = corev1.TaintEffectNoSchedule }, refused: taints},
		"its time":                          {change: func(n *corev1.Node) { n.Spec.Taints[2].TimeAdded = &metav1.Time{Time: noon} }, refused: taints},
		"adding an annotation":              {change: annotated("example.com/c", "d"), refused: annotations},
		"one whose key looks alike to ours": {change: annotated("my.readygate.dev/hold-x", ""), refused: annotations},
		"changing an annotation":            {change: annotated("example.com/a", "c"), refused: annotations},
		"deleting an annotation":            {change: unset("example.com/a"), refused: annotations},
		"deleting all annotations":          {change: func(n *corev1.Node) { n.Annotations = nil }, refused: annotations},
		"a label":                           {change: label("role", "gateway"), refused: "metadata.labels"},
		"cordoning":                         {change: func(n *corev1.Node) { n.Spec.Unschedulable = true }, refused: "spec.unschedulable"},
		"a finalizer":                       {change: func(n *corev1.Node) { n.Finalizers = []string{"example.com/f"} }, refused: "metadata.finalizers"},
	}
	v := newValidator(t, admission.Manager().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.refused != "" {
				want = []string{"the manager may change taints and annotations of rules on nodes, and not " + c.refused +
					" (including changes by another policy or webhook in the same request)"}
			}
			request := updated(managed(), managed(c.change))
			wantEqual(t, "refused", v.refuses(t, request.by(admission.ManagerUser)), want)
			wantEqual(t, "refused to others", v.refuses(t, request), nil)
		})
	}
}

// A policy that fails closed must not fail on a node that is as large as nodes can be.
func TestTheManagerPolicyWorksOnTheLargestNode(t *testing.T) {
	n := node()
	for i := range 1000 {
		label(fmt.Sprintf("example.com/label-%d", i), strings.Repeat("a", 63))(n)
		annotated(fmt.Sprintf("example.com/note-%d", i), strings.Repeat("a", 200))(n)
		tainted(fmt.Sprintf("example.com/taint-%d=%s:NoSchedule", i, strings.Repeat("a", 63)))(n)
	}
	held, stolen := n.DeepCopy(), n.DeepCopy()
	tainted(hold)(held)
	stolen.Spec.Taints = stolen.Spec.Taints[:999]
	v := newValidator(t, admission.Manager().Spec)
	wantEqual(t, "rejected", v.refuses(t, updated(n, held).by(admission.ManagerUser)), nil)
	if got := v.refuses(t, updated(n, stolen).by(admission.ManagerUser)); len(got) == 0 {
		t.Error("removing a taint of another owner is not rejected")
	}
}

func TestTheManagerMayWriteANodeThatHasNothingYet(t *testing.T) {
	v := newValidator(t, admission.Manager().Spec)
	held := node(tainted(hold), annotated(holdKey("network"), "{}"))
	for _, r := range []request{updated(node(), held), updated(held, node()), updated(node(), node())} {
		wantEqual(t, "refused", v.refuses(t, r.by(admission.ManagerUser)), nil)
	}
}

func TestTheManagerMayDoNothingElseToNodes(t *testing.T) {
	v := newValidator(t, admission.Manager().Spec)
	for name, r := range map[string]request{
		"create":         created(node()),
		"delete":         removed(node()),
		"status":         updated(node(), node()).of("status"),
		"connect":        connected(),
		"create a proxy": created(node()).of("proxy"),
	} {
		t.Run(name, func(t *testing.T) {
			wantEqual(t, "refused", v.refuses(t, r.by(admission.ManagerUser)), []string{"the manager may only update nodes, and none of their subresources"})
			for _, other := range []string{"system:node:n", "system:serviceaccount:other:readygate-manager", ""} {
				wantEqual(t, "refused to "+other, v.refuses(t, r.by(other)), nil)
			}
		})
	}
}

func TestThePlansOfTheManagerAreNeverRefused(t *testing.T) {
	v := newValidator(t, admission.Manager().Spec)
	rapid.Check(t, func(t *rapid.T) {
		book := noderule.NewRulebook(genRules(t))
		for range 20 {
			n := genNode(t)
			planned := book.Plan(noderule.NodeOf(n), noon).Apply(noderule.NodeOf(n))
			after := n.DeepCopy()
			after.Spec.Taints, after.Annotations = planned.Taints, planned.Annotations
			wantEqual(t, "refused", v.refuses(t, updated(n, after).by(admission.ManagerUser)), nil)
		}
	})
}

// And of all else that it could change, exactly what is not ours is refused.
func TestManagerPolicyRejectsExactlyForeignChanges(t *testing.T) {
	v := newValidator(t, admission.Manager().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			old := genNode(t)
			n := genChange(t, old)
			want := !maps.Equal(old.Labels, n.Labels) ||
				!maps.Equal(foreignAnnotations(old), foreignAnnotations(n)) || !slices.Equal(foreignTaints(old), foreignTaints(n))
			if got := v.refuses(t, updated(old, n).by(admission.ManagerUser)); (len(got) > 0) != want {
				t.Fatalf("from %+v\nto %+v\nrefused %q, want %t", old, n, got, want)
			}
		}
	})
}

func foreignAnnotations(n *corev1.Node) map[string]string {
	foreign := maps.Clone(n.Annotations)
	maps.DeleteFunc(foreign, func(key, _ string) bool {
		return strings.HasPrefix(key, v1alpha1.HoldPrefix) || strings.HasPrefix(key, v1alpha1.CompletedPrefix)
	})
	return foreign
}

func foreignTaints(n *corev1.Node) []string {
	var foreign []string
	for _, t := range n.Spec.Taints {
		if !strings.HasPrefix(t.Key, v1alpha1.TaintPrefixes[0]) && !strings.HasPrefix(t.Key, v1alpha1.TaintPrefixes[1]) {
			foreign = append(foreign, t.ToString())
		}
	}
	return foreign
}
