// Package events writes events to the API server one at a time, with a bounded queue.
//
// It replaces the broadcaster of client-go, which starts a goroutine per event and caches each event for minutes:
// when all nodes change at once, this was most of the memory of the manager. Repeated events become a series, and
// events may be dropped: nothing depends on them.
package events
