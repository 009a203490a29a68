// Package plugin is the program kubectl-readiness: one file per verb. It reads with package live or from files,
// builds the read model with package view, and writes it with package print. It never writes to a cluster.
package plugin
