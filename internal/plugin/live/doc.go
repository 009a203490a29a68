// Package live reads what the read model needs from a cluster, once or continuously, with the permissions of the
// user. It only reads. It reports what it may not read, and continues without it.
package live
