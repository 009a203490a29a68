// Package controlplane starts a real Kubernetes control plane on loopback: etcd, one or more
// API servers and, where asked, scheduler, controller manager and KWOK's nodes, from binaries
// that are already on disk. It owns their processes, keys and files, and lets a test stop,
// kill and restart an API server on the same address.
//
// It never downloads anything and never talks to a cluster that it did not start.
package controlplane
