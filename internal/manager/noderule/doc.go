// Package noderule is the controller of NodeReadinessRules: the only writer of their status and finalizer.
//
// It evaluates one rule for all nodes and summarises the result. Its writes are bounded in size and coalesced in
// time; without a change it writes nothing. It never writes a node: the node controller removes what a deleted
// rule added to nodes, and this package removes the finalizer when nothing is left.
package noderule
