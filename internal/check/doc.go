// Package check runs one check of a component on this node and says what it found: an
// observation. It knows nothing of Kubernetes.
//
// What a check says is short and stable: the same state gives the same words, with no
// response bodies, times, ports of this side or other things that change by themselves,
// because every change of a word is a write to the API server.
package check
