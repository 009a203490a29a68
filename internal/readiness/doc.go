// Package readiness is the core of the node half: what rules say of nodes, and what that
// asks to be changed. Rules are compiled once into a Rulebook; a Verdict is one rule's
// answer for one node; a Plan is the change of a node that all verdicts ask for.
//
// It is pure: it decides, and touches nothing. It must never import a client, a clock, a
// logger, the file system or the network. Whoever wants an answer about readiness
// (controllers, dry run, command line, pages) gets it here, so answers cannot disagree.
package readiness
