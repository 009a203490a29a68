// Package rule is the only writer of a rule's status and finalizer.
//
// It looks at all nodes with the eyes of one rule and says how the rule stands. Its writes
// are bounded in size and coalesced in time; when nothing changed it writes nothing. It
// never writes a node: what a deleted rule left on nodes is taken back by the writer of
// nodes, and the finalizer goes when nothing is left.
package rule
