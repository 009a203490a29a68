// Package doorman stands before the metrics of a manager: it lets those in whose token the API
// server knows, and who may GET the path.
//
// controller-runtime has a filter that does the same with the API server's own code. That brings
// CEL, gRPC and tracing along: more than a third of the manager's program, and of the memory
// that the program takes.
package doorman
