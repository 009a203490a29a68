package rulecache

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListLive lists the rules past any cache. Where the CRD is gone, so are all rules: what they
// left must not stay because nobody can be asked about it.
func ListLive(ctx context.Context, live client.Reader, list client.ObjectList) error {
	err := live.List(ctx, list)
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("listing rules past the cache: %w", err)
}
