// Package node is the only writer of node taints and of our node annotations.
//
// One reconcile looks at one node with the eyes of all rules and sends at most one PATCH
// for all of it. What to write is decided in package readiness; this package gathers the
// node, applies the plan, and tells of it in events and metrics. It never retries an old
// decision: after a conflict it decides again from fresh state.
package node
