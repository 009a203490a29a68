// Package probe queries the components on this node for whether they have programmed the network of a pod. It
// decides nothing and has no client of the API server.
//
// The reason of a negative result is short and does not change while the state is the same: it contains no
// response bodies, times or local ports, because every change of the text is a write to the API server.
package probe
