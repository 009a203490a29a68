// Package node is the controller of nodes: the only writer of their taints and of Readygate's annotations.
//
// One reconcile evaluates all rules for one node and sends at most one PATCH. The core package noderule decides
// what to write; this package reads the node, applies the plan, and reports it in events and metrics. It never
// retries an old decision: after a conflict it decides again from fresh state.
package node
