// Package cni checks the CNI plugins of this node.
//
//   - Plugins.Status runs the verb STATUS. It changes nothing and costs one short process per plugin, but a plugin
//     that does not implement the verb succeeds, and configuration lists of an old cniVersion are not checked at
//     all.
//   - Canary.Run does what the container runtime does for a pod: a real ADD in a namespace of its own, a check
//     from inside, and a real DEL. It writes what it will do to disk first, so that the next run can remove what a
//     killed process left.
//
// A failure is an *Error with a stable reason and text. The package knows nothing of Kubernetes and must never
// leave anything on the node: no interface, address or mount.
package cni
