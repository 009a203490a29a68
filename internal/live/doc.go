// Package live gathers what the read model needs from a cluster, with the rights of whoever
// asks: once, or followed. It only ever reads. What it may not see it says, and does without.
package live
