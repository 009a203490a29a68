package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

const accounts = "system:serviceaccounts" // the group of service accounts

func TestOnlyTheManagerAndPeopleMarkANodeAsCompleted(t *testing.T) {
	older := v1alpha1.CompletedPrefix + "network"
	marked := func() *corev1.Node { return node(completed("network")) }
	cases := map[string]struct {
		request request
		forged  string // the annotation that is refused to a kubelet or an agent
	}{
		"a node that is created":              {request: created(node())},
		"created as completed":                {request: created(marked()), forged: completedKey("network")},
		"in the older form":                   {request: created(node(annotated(older, ""))), forged: older},
		"with an empty name":                  {request: created(node(annotated(v1alpha1.CompletedPrefix, ""))), forged: v1alpha1.CompletedPrefix},
		"created with a record of a hold":     {request: created(node(annotated(holdKey("network"), "{}")))},
		"with what only looks like it":        {request: created(node(annotated("my."+older, "")))},
		"created as in use":                   {request: created(node(annotated(v1alpha1.MemoryPrefix+"x", "{}"))), forged: v1alpha1.MemoryPrefix + "x"},
		"marked later":                        {request: updated(node(), marked()), forged: completedKey("network")},
		"marked later in the older form":      {request: updated(node(annotated("a", "b")), node(annotated(older, ""))), forged: older},
		"marked through the status":           {request: updated(node(), marked()).of("status"), forged: completedKey("network")},
		"the mark is changed":                 {request: updated(node(annotated(older, "a")), node(annotated(older, "b"))), forged: older},
		"the mark is left":                    {request: updated(marked(), marked())},
		"left while other things are changed": {request: updated(marked(), node(completed("network"), label("a", "b"), annotated("c", "d"), tainted(hold)))},
		"left while the status is written":    {request: updated(marked(), node(completed("network"), reports("Ready", True))).of("status")},
		"the mark is removed":                 {request: updated(marked(), node())},
		"one of two is removed":               {request: updated(node(completed("network"), completed("storage")), marked())},
		"nothing is there":                    {request: updated(node(), node())},
	}
	v := newValidator(t, admission.Completions().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var refused []string
			if c.forged != "" {
				refused = []string{"of kubelets and service accounts, only the manager of Readygate (" + admission.ManagerUser + ") may mark a node as completed or in use: remove the annotation " + c.forged + " from the request"}
			}
			for _, who := range []struct {
				name   string
				groups []string
				want   []string
			}{
				{name: "system:node:n", groups: []string{kubelets, "system:authenticated"}, want: refused},
				{name: "system:serviceaccount:calico-system:calico-node", groups: []string{accounts, "system:serviceaccounts:calico-system"}, want: refused},
				{name: admission.ManagerUser, groups: []string{accounts}},
				{name: "kubernetes-admin", groups: []string{"system:masters", "system:authenticated"}},
				{name: "alice"},
				{},
			} {
				r := c.request.by(who.name)
				r.user.Groups = who.groups
				wantEqual(t, "refused to "+who.name, v.refuses(t, r), who.want)
			}
		})
	}
}

func TestEveryForgedCompletionRecordIsNamed(t *testing.T) {
	v := newValidator(t, admission.Completions().Spec)
	got := v.refuses(t, created(node(completed("network"), completed("storage"), annotated("a", "b")), kubelets))
	if len(got) != 1 || !strings.Contains(got[0], completedKey("network")) || !strings.Contains(got[0], completedKey("storage")) {
		t.Errorf("got %q", got)
	}
}

// A mistake here would keep kubelets from registering and reporting: nothing that they do
// every day may be refused, and no expression may fail.
func TestOrdinaryWritesOfKubeletsAreNeverRefused(t *testing.T) {
	v := newValidator(t, admission.Completions().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			old := genKubeletNode(t)
			n := genKubeletNode(t)
			if oneIn(t, 4, "registers") {
				wantEqual(t, "refused", v.refuses(t, created(withoutMarks(n), kubelets)), nil)
				continue
			}
			keepMarks(t, old, n)
			r := updated(old, n, kubelets).of(rapid.SampledFrom([]string{"", "status"}).Draw(t, "of"))
			wantEqual(t, "refused", v.refuses(t, r.by("system:node:n")), nil)
		}
	})
}

// genKubeletNode is a node in any state, with all that a kubelet writes.
func genKubeletNode(t *rapid.T) *corev1.Node {
	n := genNode(t)
	if rapid.Bool().Draw(t, "no creation time") {
		n.CreationTimestamp = metav1.Time{}
	}
	if rapid.Bool().Draw(t, "bare") {
		return n
	}
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	for i := range rapid.IntRange(0, 50).Draw(t, "images") {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint("example.com/image:", i)}, SizeBytes: int64(i)})
	}
	n.Spec.PodCIDRs, n.Spec.ProviderID = []string{"10.1.0.0/24"}, "example://n"
	return n
}

func isMark(key string) bool { return strings.HasPrefix(key, v1alpha1.CompletedPrefix) }

func withoutMarks(n *corev1.Node) *corev1.Node {
	maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return isMark(key) })
	return n
}

// keepMarks leaves the node with some of the marks that it had.
func keepMarks(t *rapid.T, old, n *corev1.Node) {
	withoutMarks(n)
	for _, key := range slices.Sorted(maps.Keys(old.Annotations)) {
		if isMark(key) && !oneIn(t, 4, "removed") {
			annotated(key, old.Annotations[key])(n)
		}
	}
}

// And exactly what marks a node, or changes a mark, is refused.
func TestExactlyForgedCompletionRecordsAreRefused(t *testing.T) {
	v := newValidator(t, admission.Completions().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			old := genNode(t)
			n := genChange(t, old)
			forged := false
			for key, value := range n.Annotations {
				was, ok := old.Annotations[key]
				forged = forged || isMark(key) && (!ok || was != value)
			}
			if got := v.refuses(t, updated(old, n, kubelets)); (len(got) > 0) != forged {
				t.Fatalf("from %v to %v: refused %q, want %t", old.Annotations, n.Annotations, got, forged)
			}
		}
	})
}
