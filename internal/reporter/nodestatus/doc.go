// Package nodestatus writes conditions of one node. Its client sends a single kind of request, a PATCH of the status
// of that node. It must never get, list, watch or replace objects.
//
// It uses net/http only: client-go is larger than the whole reporter, both on disk and in memory.
package nodestatus
