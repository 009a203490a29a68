// Package podrule is the controller of PodReadinessRules: the only writer of their status and finalizer. It also
// opens gates that no agent opens: those of a rule that is being deleted, and those on nodes without a live agent.
//
// It does not watch pods. The agents report counts in their leases; the package lists pods only on nodes without a
// live agent, and when a rule is being deleted.
package podrule
