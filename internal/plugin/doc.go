// Package plugin is the program kubectl-readiness, with one file per verb. It reads from a cluster (package live) or
// from files, builds the read model (package view), and prints it (package print). It must never write to a cluster.
package plugin
