// Package cni checks the CNI plugins of this node.
//
//   - Plugins.Status runs the verb STATUS. It changes nothing and costs one short process per plugin, but a plugin
//     that does not implement the verb succeeds, and configuration lists of an old cniVersion are not checked at
//     all.
//   - Canary.Run does what the container runtime does for a pod: ADD in a new network namespace, a check
//     from inside, and DEL. It first writes a record to disk, so that the next run can remove the canary of a
//     killed process.
//
// A failure is an *Error with a stable reason and text. The package must never use the Kubernetes API or
// leave anything on the node: no interface, address or mount.
package cni
