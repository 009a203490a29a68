// Package testkit is what tests share: a real control plane with everything installed, the
// manager in this process or as one of its own, builders for objects, and waiting for what
// a user can see. It is imported by tests only.
package testkit
