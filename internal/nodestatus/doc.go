// Package nodestatus writes conditions of one node. It is a client of the API server that
// knows a single request, a PATCH of that node's status: it cannot read, list, watch or
// replace anything, in any state.
//
// It stands on the HTTP client of the standard library alone. The usual client library would
// be three times the size of the whole reporter, on disk and in memory, on every node.
package nodestatus
