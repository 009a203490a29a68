// Package reporter turns what checks find into conditions of the node that it runs on. It is
// the only writer of those conditions.
//
// A loop for each check observes and decides (Track: thresholds, hold-down); one writer sends
// all conditions in one PATCH: at once when something changed, and again as a
// heartbeat. After a failed write only the latest state is written.
package reporter
