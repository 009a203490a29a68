// Package podgate is the agent on a node that opens the gates of its pods. It is the one writer of
// these conditions and of the latch annotation, as long as it is alive.
//
// It watches the pods of its own node, and nobody else's. Whenever something changes it lets package
// gating decide, asks the components that the decision asks for, and writes what was decided in one
// PATCH of the pod's status. It remembers nothing that is not in the API: after a restart it decides
// as before.
package podgate
