package noderule

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Overlap is exported to compare it with an exhaustive search: of the first selector with
// all others.
func Overlap(selectors ...labels.Requirements) bool {
	if len(selectors) == 0 {
		return reach{}.overlaps(reach{})
	}
	return reachOf(selectors[0]).overlaps(reachOf(slices.Concat(selectors[1:]...)))
}
