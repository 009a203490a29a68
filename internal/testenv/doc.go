// Package testenv is shared by tests: a real control plane with CRDs and policies, the manager in this process or in
// a process of its own, builders for objects, and functions that wait for a state that a user can see. Only tests import it.
package testenv
