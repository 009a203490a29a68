package plugin

import (
	"time"

	"github.com/readygate/readygate/internal/plugin/live"
)

// LastHeartbeat is when nodes of a dump were last heard of.
var LastHeartbeat = lastHeartbeat

// Picture is what watch draws.
var Picture = picture

// Changes is what watch writes where there is no terminal.
type Changes struct{ changes }

// NewChanges has written no lines yet.
func NewChanges(held bool) *Changes {
	return &Changes{changes{held: held, nodes: map[string]string{}}}
}

// Lines are what is new.
func (c *Changes) Lines(delta live.Delta, now time.Time) []string { return c.lines(delta, now) }
