// Package nodestatus writes conditions of one node. It is a client of the API server that
// knows a single request, a PATCH of that node's status: it cannot read, list, watch or
// replace anything, in any state.
//
// It stands on the HTTP client of the standard library alone: the usual client library is
// larger than the whole reporter, on the disk and in the memory of every node.
package nodestatus
