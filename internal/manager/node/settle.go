package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Settle brings one node to what decide asks for, with the patch that a reconcile would send,
// and returns the plan that it applied; an empty one if there was nothing to do. It is for
// those who write nodes while no manager does. They answer for what the plan sweeps.
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

// wrapPatch says what failed. A node that is gone needs nothing.
func wrapPatch(err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("patching node: %w", err)
}
