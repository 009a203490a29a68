package quota

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Begin and End are the two halves of Commit, for writes that end later.
func (r *Reservation) Begin(plan *noderule.Plan) bool { return r.begin(plan) }

func (r *Reservation) End(plan *noderule.Plan, node *corev1.Node, outcome Outcome) {
	r.end(plan, node, outcome)
}
