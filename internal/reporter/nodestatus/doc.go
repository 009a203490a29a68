// Package nodestatus writes conditions of one node. Its client has a single request, a PATCH of the status of that
// node: it cannot read, list, watch or replace anything.
//
// It uses net/http only: client-go is larger than the whole reporter, on the disk and in the memory of every node.
package nodestatus
