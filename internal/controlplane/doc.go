// Package controlplane starts a real Kubernetes control plane on loopback: etcd, one or more API servers and, optionally,
// the scheduler, the controller manager and KWOK, from binaries that are already on disk. It owns their processes, keys and
// files. A test can stop, kill and restart an API server on the same address.
//
// It never downloads anything and never connects to a cluster that it did not start.
package controlplane
