// Package metricsauth authenticates and authorizes requests to the metrics endpoint with a TokenReview and a
// SubjectAccessReview.
//
// controller-runtime has a filter that does the same with the code of the API server. That filter adds CEL, gRPC
// and tracing to the binary: more than a third of the size of the manager, and of the memory that the binary
// takes.
package metricsauth
