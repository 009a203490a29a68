// Package testenv is what tests share: a real control plane with everything installed, the manager in this process
// or as its own process, builders for objects, and waiting for what a user can see. Only tests import it.
package testenv
