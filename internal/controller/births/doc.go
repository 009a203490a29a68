// Package births keeps the policy by which the API server itself puts taints on nodes as they
// are created. It is the only writer of that policy, and writes nothing else: it cannot create
// the policy, and does not touch its binding.
package births
