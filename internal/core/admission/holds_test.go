package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// The manager writes records. Others may do so only in a request that also adds the taint of the
// record, as readygate-taint-new-nodes does for a label; a kubelet never may.
func TestOnlyTheManagerAddsOrChangesHoldRecords(t *testing.T) {
	const record = `{"rule":"net","taint":"readiness.k8s.io/NetworkReady:NoSchedule","origin":"labelled"}`
	key := holdKey("network")
	held := func(options ...nodeOption) *corev1.Node {
		return node(append(options, annotated(key, record))...)
	}
	const everyone, kubeletsOnly = "everyone", "kubelets"
	for name, c := range map[string]struct {
		request request
		refused string
	}{
		"a record is added":                     {request: updated(node(), held()), refused: everyone},
		"a record is added beside its taint":    {request: updated(node(tainted(hold)), held(tainted(hold))), refused: everyone},
		"a record is added through the status":  {request: updated(node(), held(tainted(hold))).of("status"), refused: everyone},
		"a record is changed":                   {request: updated(node(annotated(key, "x")), held()), refused: everyone},
		"a record is added with another taint":  {request: updated(node(), held(tainted("readiness.k8s.io/Other=pending:NoSchedule"))), refused: everyone},
		"a record is added with its taint":      {request: updated(node(), held(tainted(hold))), refused: kubeletsOnly},
		"a record is replaced with its taint":   {request: updated(node(annotated(key, "x")), held(tainted(hold))), refused: kubeletsOnly},
		"a record is removed":                   {request: updated(held(), node())},
		"a record is left":                      {request: updated(held(), held(label("a", "b"), annotated("c", "d")))},
		"a record is left in the status":        {request: updated(held(), held(reports("Ready", True), annotated("c", "d"))).of("status")},
		"another annotation is added":           {request: updated(node(), node(annotated("example.com/hold-x", "y")))},
		"the first annotation of all is a hold": {request: updated(&corev1.Node{}, held()), refused: everyone},
	} {
		t.Run(name, func(t *testing.T) {
			v := newValidator(t, admission.Holds().Spec)
			refused := []string{"only the manager of Readygate (" + admission.ManagerUser + ") may add or change an ownership record on a node: leave the annotation " + key + " as it is, or remove it"}
			for _, who := range []struct {
				name    string
				groups  []string
				refused bool
			}{
				{name: "system:node:n", groups: []string{kubelets, "system:authenticated"}, refused: c.refused != ""},
				{name: "system:serviceaccount:calico-system:calico-node", groups: []string{accounts}, refused: c.refused == everyone},
				{name: "kubernetes-admin", groups: []string{"system:masters"}, refused: c.refused == everyone},
				{name: "alice", refused: c.refused == everyone},
				{name: admission.ManagerUser, groups: []string{accounts}},
			} {
				r := c.request.by(who.name)
				r.user.Groups = who.groups
				want := []string(nil)
				if who.refused {
					want = refused
				}
				wantEqual(t, "refused to "+who.name, v.refuses(t, r), want)
			}
		})
	}
}

// Whatever a kubelet writes, exactly new and changed ownership records are refused, and no expression fails.
func TestExactlyForgedHoldsAreRefusedToKubelets(t *testing.T) {
	v := newValidator(t, admission.Holds().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			old := genKubeletNode(t)
			n := genChange(t, old)
			forged := false
			for key, value := range n.Annotations {
				was, ok := old.Annotations[key]
				forged = forged || strings.HasPrefix(key, v1alpha1.HoldPrefix) && (!ok || was != value)
			}
			r := updated(old, n, kubelets).of(rapid.SampledFrom([]string{"", "status"}).Draw(t, "of"))
			if got := v.refuses(t, r); (len(got) > 0) != forged {
				t.Fatalf("from %v to %v: refused %q, want %t", old.Annotations, n.Annotations, got, forged)
			}
		}
	})
}
