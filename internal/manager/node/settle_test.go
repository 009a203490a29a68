package node

import (
	"context"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/readygate/readygate/internal/core/noderule"
)

// release plans to remove Readygate's taint, and nothing else.
func release(n *noderule.Node) *noderule.Plan {
	left := slices.DeleteFunc(slices.Clone(n.Taints), func(t corev1.Taint) bool { return t.Key == ours.Key })
	return &noderule.Plan{Taints: left, TaintsChanged: len(left) != len(n.Taints)}
}

// settling returns a client with a held node. It calls refuse before each patch of the node.
func settling(refuse func(ctx context.Context, c client.Client, try int) error) (client.Client, *corev1.Node) {
	node, tries := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{ours}}}, 0
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			tries++
			if err := refuse(ctx, c, tries); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build(), node
}

var errTest = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid}}

// Another client adds a taint at the same moment: Settle decides again, and that taint stays.
func TestSettleDecidesAgainAfterAConflict(t *testing.T) {
	c, node := settling(func(ctx context.Context, c client.Client, try int) error {
		if try > 1 {
			return nil
		}
		var stored corev1.Node
		if err := c.Get(ctx, client.ObjectKey{Name: "n"}, &stored); err != nil {
			return err
		}
		stored.Spec.Taints = append(stored.Spec.Taints, foreign)
		if err := c.Update(ctx, &stored); err != nil {
			return err
		}
		return errTest
	})
	plan, err := Settle(t.Context(), c, node, release)
	if err != nil || plan.Empty() {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	var got corev1.Node
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Key != foreign.Key {
		t.Errorf("taints are %v", got.Spec.Taints)
	}
	if again, err := Settle(t.Context(), c, &got, release); err != nil || !again.Empty() {
		t.Errorf("a settled node: %+v, %v", again, err)
	}
}

// A conflict for which fresh state gives the same patch is a rejection, and a deleted node needs no write. In neither
// case anything is written.
func TestSettleGivesUp(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		fails  bool
	}{
		"the same conflict again": {errTest, true},
		"forbidden":               {apierrors.NewForbidden(corev1.Resource("nodes"), "n", nil), true},
		"gone":                    {apierrors.NewNotFound(corev1.Resource("nodes"), "n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, node := settling(func(context.Context, client.Client, int) error { return tc.answer })
			if plan, err := Settle(t.Context(), c, node, release); (err != nil) != tc.fails || !plan.Empty() {
				t.Errorf("plan %+v, %v", plan, err)
			}
		})
	}
}
