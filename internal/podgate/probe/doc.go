// Package probe checks whether the components on this node have programmed the network of a pod. It must never
// decide about gates or use the API server.
//
// The reason of a negative result is short and does not change while the state is the same: it contains no
// response bodies, times or local ports, because every change of the text is a write to the API server.
package probe
