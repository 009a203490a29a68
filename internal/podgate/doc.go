// Package podgate is the agent on a node that opens the gates of its pods. It is the one writer of
// these conditions and of the latch annotation, as long as it is alive.
//
// It watches the pods of its own node only. Whenever something changes, package podrule of the core decides, and
// podgate queries the components that the decision names and writes the decision in one PATCH of the pod's
// status. It keeps no state that is not in the API: after a restart it decides as before.
package podgate
