// Package check runs one check of a component on this node and returns the result. It must never use the Kubernetes API.
//
// The message of a result is short and does not change while the state is the same: it contains no response bodies,
// times or local ports, because every change of the message is a write to the API server.
package check
