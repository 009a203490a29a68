package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/readygate/readygate/internal/core/noderule"
)

var (
	foreign = corev1.Taint{Key: "example.com/foreign", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: time.Unix(1e9, 0)}}
	ours    = corev1.Taint{Key: "readiness.k8s.io/x", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
)

// The patch changes the JSON of the node as planned.
func TestJSONPatchAppliesThePlan(t *testing.T) {
	tests := map[string]struct {
		taints      []corev1.Taint
		annotations map[string]string
		plan        noderule.Plan
	}{
		"the first taint and the first annotation": {
			plan: noderule.Plan{Taints: []corev1.Taint{ours}, TaintsChanged: true, Set: map[string]string{"a/b~c": "1"}},
		},
		"one more taint and annotation": {
			taints: []corev1.Taint{foreign}, annotations: map[string]string{"x": "y"},
			plan: noderule.Plan{Taints: []corev1.Taint{foreign, ours}, TaintsChanged: true, Set: map[string]string{"a": "1"}},
		},
		"the last taint and annotation go": {
			taints: []corev1.Taint{ours}, annotations: map[string]string{"a/b": "1"},
			plan: noderule.Plan{TaintsChanged: true, Remove: []string{"a/b"}},
		},
		"one taint goes, one annotation for another": {
			taints: []corev1.Taint{ours, foreign}, annotations: map[string]string{"a": "1", "x": "y"},
			plan: noderule.Plan{Taints: []corev1.Taint{foreign}, TaintsChanged: true, Set: map[string]string{"b": "2"}, Remove: []string{"a"}},
		},
		"only an annotation": {
			taints: []corev1.Taint{foreign}, annotations: map[string]string{"a": "1"},
			plan: noderule.Plan{Taints: []corev1.Taint{foreign}, Set: map[string]string{"a": "2"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Annotations: tc.annotations}, Spec: corev1.NodeSpec{Taints: tc.taints}}
			node := noderule.NodeOf(obj)
			want := tc.plan.Apply(node)
			got := apply(t, obj, node, &tc.plan)
			if !equality.Semantic.DeepEqual(got.Spec.Taints, want.Taints) || !equality.Semantic.DeepEqual(got.Annotations, want.Annotations) {
				t.Errorf("got %v %v, want %v %v", got.Spec.Taints, got.Annotations, want.Taints, want.Annotations)
			}
		})
	}
}

func apply(t *testing.T, obj *corev1.Node, node *noderule.Node, plan *noderule.Plan) *corev1.Node {
	t.Helper()
	before, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	data, err := jsonPatch(node, plan)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("applying %s to %s: %v", data, before, err)
	}
	var got corev1.Node
	if err := json.Unmarshal(after, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestPatchErrorsAreClassified(t *testing.T) {
	answer := func(code int32, causes ...string) error {
		status := metav1.Status{Status: metav1.StatusFailure, Code: code, Details: &metav1.StatusDetails{}}
		for _, cause := range causes {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Message: cause})
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	tests := map[string]struct {
		err                       error
		conflict, refusal, server bool
	}{
		"a failed test of the patch is a conflict": {err: answer(http.StatusUnprocessableEntity), conflict: true},
		"an invalid taint is a rejection":          {err: answer(http.StatusUnprocessableEntity, "invalid"), refusal: true},
		"a version conflict is a conflict":         {err: answer(http.StatusConflict), conflict: true},
		"a missing permission is a rejection":      {err: answer(http.StatusForbidden), refusal: true},
		"too many requests is neither":             {err: answer(http.StatusTooManyRequests)},
		"a timeout of etcd is neither":             {err: answer(http.StatusInternalServerError), server: true},
		"a missing token is neither":               {err: answer(http.StatusUnauthorized)},
		"a server that is starting is neither":     {err: answer(http.StatusServiceUnavailable)},
		"a broken connection is neither":           {err: errors.New("connection refused")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if isConflict(tc.err) != tc.conflict || isRejection(tc.err) != tc.refusal || isServerError(tc.err) != tc.server {
				t.Errorf("conflict %v, refusal %v, server %v", isConflict(tc.err), isRejection(tc.err), isServerError(tc.err))
			}
		})
	}
}

// The API server decodes the whole node at every write, and field validation makes that slower.
func TestPatchDisablesFieldValidation(t *testing.T) {
	var asked client.PatchOptions
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, options ...client.PatchOption) error {
			asked.ApplyOptions(options)
			return nil
		},
	})
	if _, err := send(t.Context(), c, "n", []byte("[]")); err != nil || asked.FieldValidation != metav1.FieldValidationIgnore {
		t.Errorf("%v, asked for %q", err, asked.FieldValidation)
	}
}
