package noderule

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// edition tells one rule that an object compiles to from the next. It is cheap to take: most
// changes of rules are of their status, and make no new one.
type edition struct {
	uid types.UID
	// generation stands for the spec, which cannot change within one.
	generation             int64
	deleting               bool
	takenOver, dryRunSince time.Time
}

func editionOf(obj *v1alpha1.NodeReadinessRule) edition {
	e := edition{
		uid:         obj.UID,
		generation:  obj.Generation,
		deleting:    !obj.DeletionTimestamp.IsZero(),
		dryRunSince: dryRunSince(obj),
	}
	if bootstrap(obj) { // it matters for completion records only
		e.takenOver = takenOver(obj)
	}
	return e
}

func (e edition) equal(other edition) bool {
	return e.uid == other.uid && e.generation == other.generation && e.deleting == other.deleting &&
		e.takenOver.Equal(other.takenOver) && e.dryRunSince.Equal(other.dryRunSince)
}

func bootstrap(obj *v1alpha1.NodeReadinessRule) bool {
	return obj.Spec.EnforcementMode == v1alpha1.EnforcementModeBootstrapOnly
}

func takenOver(obj *v1alpha1.NodeReadinessRule) time.Time {
	if obj.Status.TakenOverAt == nil {
		return time.Time{}
	}
	return obj.Status.TakenOverAt.Time
}

func dryRunSince(obj *v1alpha1.NodeReadinessRule) time.Time {
	if !obj.Spec.DryRun || obj.Status.DryRunSince == nil {
		return time.Time{}
	}
	return obj.Status.DryRunSince.Time
}
