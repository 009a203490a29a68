// Package noderule is the core of the node half. Rules are compiled once into a Rulebook; a Verdict is the result
// of one rule for one node; a Plan is the change of a node that all verdicts require.
//
// It is pure: it never imports a client, a clock, a logger, the file system or the network. Controllers, dry run,
// command line and pages all call it, so their results cannot disagree.
package noderule
