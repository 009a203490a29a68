// Package podgate is the per-node agent that opens the gates of pods. While it is alive, it is the only writer of
// these conditions and of the latch annotation on its node.
//
// It watches only the pods of its own node and must never write pods of other nodes. On every change, package podrule
// decides; podgate probes the components that the decision names and writes the decision in one PATCH of the pod's
// status. A restart closes no gate: after it the results of components are unknown, not negative.
package podgate
