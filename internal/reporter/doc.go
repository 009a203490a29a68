// Package reporter writes the results of checks as conditions of the node that it runs on. It is
// the only writer of these conditions and must never write any other part of the node.
//
// One loop per check runs the check and decides the status (Track: thresholds, hold-down). One writer sends
// all conditions in one PATCH: immediately after a change, and periodically as a
// heartbeat. After a failed write it sends only the latest state.
package reporter
