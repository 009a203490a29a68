// Package live reads the input of the read model from a cluster, once or continuously, with the permissions of the
// user. It must only read. It reports what it may not read, and continues without it.
package live
