// Package demo plays a scenario on a cluster with the unchanged code of the manager, of the
// reporter (against health endpoints that the demo serves) and of podgate (one agent per
// node). KWOK simulates nodes and pods; the demo simulates components that set conditions of
// pods. It displays the state of the nodes, and prints the results at the end.
//
// It always starts its own control plane, and must never connect to another cluster.
package demo
