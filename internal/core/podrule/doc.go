// Package podrule is the core of the pod half: it decides when the network readiness gates of pods open. It is
// pure: it has no client and no clock, and probes no component. The agent on a node, the manager, the command line
// and the dashboard all call it, so their results cannot disagree.
//
// A gate opens when every component of every rule that selects the pod, and has this gate, is ready for the
// current sandbox of the pod. The decision is written to the pod: the condition of the gate, and an annotation
// that names the sandbox (package latchkey). An agent that restarts reads its decisions from there.
package podrule
