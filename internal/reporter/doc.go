// Package reporter turns what checks find into conditions of the node that it runs on. It is
// the only writer of those conditions.
//
// A loop for each check observes and decides (Track: thresholds, hold-down); one writer says
// all that was decided in one PATCH: at once when something changed, and again as a
// heartbeat. What cannot be written is kept, and the latest of it written later.
package reporter
