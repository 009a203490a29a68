// Package cni asks the CNI plugins of this node whether they work.
//
//   - Plugins.Status asks with the verb STATUS. It changes nothing and costs one short process
//     a plugin, but its yes is worth only what the plugin makes of it: a plugin that does not
//     implement the verb says yes, and lists of an old cniVersion are not asked at all.
//   - Canary.Run does what the container runtime does for a pod: a real ADD in a namespace of
//     its own, a look from inside, and a real DEL. What it is about to do is on disk first, so
//     that Canary.Sweep can take back what a killed process left.
//
// What failed is an *Error with a stable reason and text. The package knows nothing of
// Kubernetes and must never leave anything on the node: no interface, address or mount.
package cni
