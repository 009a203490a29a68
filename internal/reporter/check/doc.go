// Package check runs one check of a component on this node and returns the result. It knows nothing of Kubernetes.
//
// The text of a result is short and does not change while the state is the same: it contains no response bodies,
// times or local ports, because every change of the text is a write to the API server.
package check
