package admission_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// seen is a node with conditions of Kubernetes and of a reporter.
func seen(options ...nodeOption) *corev1.Node {
	return managed(append([]nodeOption{reports("Ready", True), reports(calicoReady, True)}, options...)...)
}

func allBut[T any](list []T, i int) []T {
	return append(append([]T{}, list[:i]...), list[i+1:]...)
}

func TestTheCleanupMayOnlyRemoveFromNodes(t *testing.T) {
	cases := map[string]struct {
		change      nodeOption
		subresource string
		refused     string // what may not be changed
	}{
		"nothing":                           {change: func(*corev1.Node) {}},
		"nothing of the status":             {change: func(*corev1.Node) {}, subresource: "status"},
		"a taint of a rule removed":         {change: func(n *corev1.Node) { n.Spec.Taints = allBut(n.Spec.Taints, 1) }},
		"a record removed":                  {change: func(n *corev1.Node) { delete(n.Annotations, holdKey("network")) }},
		"a completion removed":              {change: func(n *corev1.Node) { delete(n.Annotations, completedKey("storage")) }},
		"a condition removed":               {change: func(n *corev1.Node) { n.Status.Conditions = allBut(n.Status.Conditions, 1) }, subresource: "status"},
		"a taint of others removed":         {change: func(n *corev1.Node) { n.Spec.Taints = allBut(n.Spec.Taints, 0) }, refused: "taints"},
		"all taints removed":                {change: func(n *corev1.Node) { n.Spec.Taints = nil }, refused: "taints"},
		"a taint of a rule added":           {change: tainted("readiness.k8s.io/StorageReady:NoSchedule"), refused: "taints"},
		"its value changed":                 {change: func(n *corev1.Node) { n.Spec.Taints[1].Value = "other" }, refused: "taints"},
		"a taint of others added":           {change: tainted("example.com/other:NoSchedule"), refused: "taints"},
		"an annotation of others removed":   {change: func(n *corev1.Node) { delete(n.Annotations, "example.com/a") }, refused: "annotations"},
		"all annotations removed":           {change: func(n *corev1.Node) { n.Annotations = nil }, refused: "annotations"},
		"a completion added":                {change: completed("network"), refused: "annotations"},
		"a record changed":                  {change: annotated(holdKey("network"), "{ }"), refused: "annotations"},
		"a record removed with the status":  {change: func(n *corev1.Node) { delete(n.Annotations, holdKey("network")) }, subresource: "status", refused: "annotations"},
		"a condition added":                 {change: reports("example.com/Other", True), subresource: "status", refused: "conditions"},
		"a condition changed":               {change: setCondition(1, func(c *corev1.NodeCondition) { c.Status = False }), subresource: "status", refused: "conditions"},
		"its heartbeat changed":             {change: setCondition(1, func(c *corev1.NodeCondition) { c.LastHeartbeatTime = metav1.NewTime(noon) }), subresource: "status", refused: "conditions"},
		"a condition of Kubernetes removed": {change: func(n *corev1.Node) { n.Status.Conditions = allBut(n.Status.Conditions, 0) }, subresource: "status", refused: "conditions"},
		"an address": {change: func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}}
		}, subresource: "status", refused: "status.addresses"},
		"a label":                 {change: label("role", "gateway"), refused: "metadata.labels"},
		"a label with the status": {change: label("role", "gateway"), subresource: "status", refused: "metadata.labels"},
		"a finalizer":             {change: func(n *corev1.Node) { n.Finalizers = []string{"example.com/f"} }, refused: "metadata.finalizers"},
		"cordoning":               {change: func(n *corev1.Node) { n.Spec.Unschedulable = true }, refused: "spec.unschedulable"},
	}
	v := newValidator(t, admission.Cleanup().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.refused != "" {
				want = []string{"the cleanup may remove taints and annotations of rules, and conditions that a reporter reported, from nodes, and not change " + c.refused +
					" (including changes by another policy or webhook in the same request)"}
			}
			request := updated(seen(), seen(c.change)).of(c.subresource)
			wantEqual(t, "refused", v.refuses(t, request.by(admission.CleanupUser)), want)
			wantEqual(t, "refused to others", v.refuses(t, request), nil)
		})
	}
}

func TestTheCleanupMayDoNothingElseToNodes(t *testing.T) {
	v := newValidator(t, admission.Cleanup().Spec)
	for name, r := range map[string]request{"create": created(node()), "delete": removed(node()), "connect": connected(), "proxy": created(node()).of("proxy")} {
		t.Run(name, func(t *testing.T) {
			wantEqual(t, "refused", v.refuses(t, r.by(admission.CleanupUser)), []string{"the cleanup may only update nodes and their status"})
			wantEqual(t, "refused to another account", v.refuses(t, r.by("system:serviceaccount:other:"+admission.CleanupAccount)), nil)
		})
	}
}

// All that a cleanup plans, of rules that stay and of rules that are deleted, it may do: by its
// own policy, and by that of completion records.
func TestThePlansOfTheCleanupAreNeverRefused(t *testing.T) {
	limits, completions := newValidator(t, admission.Cleanup().Spec), newValidator(t, admission.Completions().Spec)
	rapid.Check(t, func(t *rapid.T) {
		book := noderule.NewRulebook(genRules(t)).Withdrawn()
		for range 20 {
			n := genNode(t)
			view := noderule.NodeOf(n)
			for _, plan := range []*noderule.Plan{book.Plan(view, noon), noderule.Disown(view)} {
				planned, after := plan.Apply(view), n.DeepCopy()
				after.Spec.Taints, after.Annotations = planned.Taints, planned.Annotations
				wantEqual(t, "refused", limits.refuses(t, updated(n, after).by(admission.CleanupUser)), nil)
				wantEqual(t, "refused", completions.refuses(t, updated(n, after, "system:serviceaccounts").by(admission.CleanupUser)), nil)
			}
		}
	})
}

// The cleanup may remove a reserved condition, and may not set it.
func TestTheCleanupMayRemoveAReservedCondition(t *testing.T) {
	v := newValidator(t, reporter.Reserved().Spec)
	before, gone := seen(), seen(func(n *corev1.Node) { n.Status.Conditions = allBut(n.Status.Conditions, 1) })
	forged := seen(setCondition(1, func(c *corev1.NodeCondition) { c.Status = False }))
	wantEqual(t, "refused", v.refuses(t, updated(before, gone).of("status").by(admission.CleanupUser)), nil)
	for name, r := range map[string]request{"changing it": updated(before, forged), "adding it": updated(gone, before)} {
		if len(v.refuses(t, r.of("status").by(admission.CleanupUser))) == 0 {
			t.Errorf("%s is not refused", name)
		}
	}
}

// A policy that fails closed must not fail on a node that is as large as nodes can be.
func TestTheCleanupIsNotTooExpensiveOnTheLargestNode(t *testing.T) {
	large := func() *corev1.Node {
		n := seen()
		for i := range 1000 {
			label(fmt.Sprintf("example.com/label-%d", i), strings.Repeat("a", 63))(n)
			annotated(fmt.Sprintf("example.com/note-%d", i), strings.Repeat("a", 200))(n)
			tainted(fmt.Sprintf("example.com/taint-%d=%s:NoSchedule", i, strings.Repeat("a", 63)))(n)
		}
		return n
	}
	after := large()
	after.Spec.Taints = allBut(after.Spec.Taints, 1)
	delete(after.Annotations, holdKey("network"))
	v := newValidator(t, admission.Cleanup().Spec)
	wantEqual(t, "refused", v.refuses(t, updated(large(), after).by(admission.CleanupUser)), nil)
}
