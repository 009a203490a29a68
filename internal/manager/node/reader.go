package node

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/liveread"
	"github.com/readygate/readygate/internal/manager/nodecache"
)

// pageSize is the number of nodes per LIST request: each can have dozens of kilobytes.
const pageSize = 200

// Reader reads nodes for the quota. All fields are required.
type Reader struct {
	// Client reads from the cache, own writes included. Its nodes are shared with the cache and read-only.
	Client client.Reader
	// API reads from the API server.
	API client.Reader
	// Nodes are all nodes of the cache.
	Nodes *nodecache.Cache
	// Strip reduces a node as the cache does.
	Strip func(any) (any, error)
}

// Cached returns a node from the cache.
func (r *Reader) Cached(ctx context.Context, name string) (*corev1.Node, error) {
	var obj corev1.Node
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &obj, client.UnsafeDisableDeepCopy)
	return &obj, err
}

// Live returns a node from the API server.
func (r *Reader) Live(ctx context.Context, name string) (*corev1.Node, error) {
	var obj corev1.Node
	if err := r.API.Get(ctx, types.NamespacedName{Name: name}, &obj); err != nil {
		return nil, err
	}
	return r.Reduce(&obj), nil
}

// All returns the nodes of the cache.
func (r *Reader) All() iter.Seq[*corev1.Node] { return r.Nodes.All() }

// List lists the nodes of the API server.
func (r *Reader) List(ctx context.Context, each func(*corev1.Node)) error {
	for page, err := range liveread.Pages(func(token string) (*corev1.NodeList, error) {
		page := &corev1.NodeList{}
		return page, r.API.List(ctx, page, client.Limit(pageSize), client.Continue(token))
	}) {
		if err != nil {
			return fmt.Errorf("listing nodes: %w", err)
		}
		for i := range page.Items {
			each(r.Reduce(&page.Items[i]))
		}
	}
	return nil
}

// Reduce reduces a node as the cache does.
func (r *Reader) Reduce(obj *corev1.Node) *corev1.Node {
	stripped, err := r.Strip(obj)
	if err != nil {
		return obj
	}
	return stripped.(*corev1.Node)
}
