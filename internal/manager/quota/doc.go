// Package quota enforces maxUnavailable: it decides whether a rule may taint one more node.
//
// The cache is always behind the API server, so the count does not rely on it. A grant counts from before the
// write until a node that is at least as new as the write shows the result, or the write has failed for certain. A
// write without a response counts until it can no longer take effect. Before the first grant, all nodes are listed
// from the API server: the previous leader may have written a moment ago, and if it did not release its lease, its
// last writes may still take effect.
package quota
