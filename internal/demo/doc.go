// Package demo plays a scenario on a cluster, with the product as it is: the manager, the
// reporter's own code against health endpoints that the demo serves, and podgate's own code for
// each node. Only nodes and pods are simulated, by KWOK, and components that set conditions of
// pods, by the demo. It shows what happens, and says at the end what was proven.
//
// It plays on a control plane of its own or, where the user says so, on an existing cluster.
// There it never touches a node, rule or pod that it did not make, and takes everything back.
package demo
