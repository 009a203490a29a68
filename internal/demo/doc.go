// Package demo plays a scenario on a cluster, with the product as it is: the manager, the
// reporter's own code against health endpoints that the demo serves, and podgate's own code for
// each node. Only nodes and pods are simulated, by KWOK, and components that set conditions of
// pods, by the demo. It shows what happens, and reports the results at the end.
//
// It always starts its own control plane, and never connects to another cluster.
package demo
