package plugin

import (
	"time"

	"github.com/readygate/readygate/internal/plugin/live"
)

// LastHeartbeat is the time of the last heartbeat in a dump of nodes.
var LastHeartbeat = lastHeartbeat

// Picture is what watch draws.
var Picture = picture

// Changes is what watch writes if the output is not a terminal.
type Changes struct{ changes }

// NewChanges has written no lines yet.
func NewChanges(held bool) *Changes {
	return &Changes{changes{held: held, nodes: map[string]string{}}}
}

// Lines are the lines for the changes in a delta.
func (c *Changes) Lines(delta live.Delta, now time.Time) []string { return c.lines(delta, now) }
