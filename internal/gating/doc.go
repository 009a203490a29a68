// Package gating decides when the network readiness gates of pods open. It is pure: it has no
// client, no clock and asks no component. The agent on a node, the manager, the command line and the
// dashboard get their answers from it, so they cannot disagree.
//
// A gate is open when every component of every rule that selects the pod, and has this gate, has said
// yes for the sandbox that the pod has now. What was decided is written to the pod: the gate's
// condition, and beside it, in an annotation, for which sandbox that holds (package latchkey). So an
// agent that restarts knows what it knew before.
package gating
