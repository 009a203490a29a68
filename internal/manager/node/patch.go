package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/leadership"
)

// operation is one operation of a JSON patch (RFC 6902). A null value is written, because a test for absence needs it.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	taintsPath      = "/spec/taints"
	annotationsPath = "/metadata/annotations"
)

// jsonPatch encodes the plan as one JSON patch that applies only to the node that it was made for: the same object, with
// the same list of taints. A test of the resourceVersion would fail at every heartbeat; this one fails only if the taints
// changed.
func jsonPatch(node *noderule.Node, plan *noderule.Plan) ([]byte, error) {
	ops := []operation{
		{Op: "test", Path: "/metadata/uid", Value: node.UID},
		{Op: "test", Path: taintsPath, Value: orNull(node.Taints)},
	}
	if plan.TaintsChanged {
		ops = append(ops, taintsOperation(node, plan))
	}
	return json.Marshal(append(ops, annotationOperations(node, plan)...))
}

// unchecked disables field validation in the API server: the patch names known fields only.
const unchecked = client.FieldValidation(metav1.FieldValidationIgnore)

// send sends the patch, and returns the written node. It is the only function that writes nodes.
func send(ctx context.Context, c client.Writer, node string, patch []byte) (*corev1.Node, error) {
	obj := &corev1.Node{}
	obj.Name = node
	err := c.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch), unchecked)
	return obj, err
}

func taintsOperation(node *noderule.Node, plan *noderule.Plan) operation {
	switch {
	case len(plan.Taints) == 0:
		return operation{Op: "remove", Path: taintsPath}
	case len(node.Taints) == 0:
		return operation{Op: "add", Path: taintsPath, Value: plan.Taints}
	default:
		return operation{Op: "replace", Path: taintsPath, Value: plan.Taints}
	}
}

// annotationOperations changes single annotations. If the node has none, the map is created only if it still does not
// exist: adding it would replace one that another client has created.
func annotationOperations(node *noderule.Node, plan *noderule.Plan) []operation {
	var ops []operation
	if node.Annotations == nil && len(plan.Set) > 0 {
		ops = append(ops,
			operation{Op: "test", Path: annotationsPath, Value: nil},
			operation{Op: "add", Path: annotationsPath, Value: map[string]string{}})
	}
	for _, key := range slices.Sorted(maps.Keys(plan.Set)) {
		ops = append(ops, operation{Op: "add", Path: annotationPath(key), Value: plan.Set[key]})
	}
	for _, key := range plan.Remove {
		ops = append(ops, operation{Op: "remove", Path: annotationPath(key)})
	}
	return ops
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func annotationPath(key string) string { return annotationsPath + "/" + pointer.Replace(key) }

// orNull is the list as the API server stores it: an empty one is absent.
func orNull(taints []corev1.Taint) any {
	if len(taints) == 0 {
		return nil
	}
	return taints
}

// isConflict reports whether the patch did not match the current node, because of a write of another client. The API
// server returns 422 without causes for a failed test or a path that does not exist; for an invalid object or a
// rejection by a policy it returns causes.
func isConflict(err error) bool {
	status, ok := statusOf(err)
	return ok && (status.Code == http.StatusConflict || status.Code == http.StatusUnprocessableEntity && !hasCauses(status))
}

// isRejection reports whether the API server will return the same error until a policy, a role or a rule changes.
func isRejection(err error) bool {
	status, ok := statusOf(err)
	if !ok {
		return false
	}
	switch status.Code {
	case http.StatusUnprocessableEntity:
		return hasCauses(status)
	case http.StatusForbidden, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return true
	default:
		return false
	}
}

// isConclusive reports whether the write cannot take effect. After an error of the server, or without a response, it
// may.
func isConclusive(err error) bool {
	return errors.Is(err, leadership.ErrFenced) || isConflict(err) || isRejection(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}

// isServerError reports whether the API server, or a webhook that it called, failed. It is not true for an API server
// that cannot be reached, is busy or starting.
func isServerError(err error) bool {
	status, ok := statusOf(err)
	return ok && status.Code == http.StatusInternalServerError
}

type apiStatus struct {
	Code   int32
	Causes int
}

func hasCauses(s apiStatus) bool { return s.Causes > 0 }

func statusOf(err error) (apiStatus, bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return apiStatus{}, false
	}
	status := apiStatus{Code: answer.Status().Code}
	if details := answer.Status().Details; details != nil {
		status.Causes = len(details.Causes)
	}
	return status, true
}

// Settle applies the plan that decide returns for one node, with the patch that a reconcile would send. It returns the
// applied plan; an empty one if nothing was to be done. Only a program that writes nodes while no manager does may call
// it. Settle does not check that swept rules do not exist: the caller does.
func Settle(ctx context.Context, c client.Client, obj *corev1.Node, decide func(*noderule.Node) *noderule.Plan) (*noderule.Plan, error) {
	var before []byte
	for range attempts {
		node := noderule.NodeOf(obj)
		plan := decide(node)
		if plan.Empty() {
			return plan, nil
		}
		patch, err := jsonPatch(node, plan)
		if err != nil {
			return &noderule.Plan{}, err
		}
		_, err = send(ctx, c, node.Name, patch)
		switch {
		case err == nil:
			return plan, nil
		case !isConflict(err) || bytes.Equal(patch, before):
			return &noderule.Plan{}, wrapPatch(err)
		}
		before, obj = patch, &corev1.Node{}
		if err := c.Get(ctx, types.NamespacedName{Name: node.Name}, obj); err != nil {
			return &noderule.Plan{}, wrapPatch(err)
		}
	}
	return &noderule.Plan{}, errors.New("patching node: its taints changed during every attempt")
}

// wrapPatch adds context to an error. A node that does not exist needs no write.
func wrapPatch(err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("patching node: %w", err)
}
