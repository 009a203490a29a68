// Package podrule keeps the status and the finalizer of rules for pods, and opens the gates that
// nobody else would: those of a rule that is being deleted, and those on nodes without a live agent.
//
// It does not watch pods. What it knows of them is in the leases of the agents; only where there is
// no live agent, or a rule is being deleted, it reads them itself.
package podrule
