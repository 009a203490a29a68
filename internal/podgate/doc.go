// Package podgate is the agent on a node that opens the gates of its pods. It is the one writer of
// these conditions and of the latch annotation, as long as it is alive.
//
// It watches the pods of its own node only. Whenever something changes, package podrule of the core decides, and
// podgate queries the components that the decision names and writes the decision in one PATCH of the pod's
// status. A restart closes no gate: results of components are unknown then, which is not the same as negative.
package podgate
