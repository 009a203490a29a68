package plugin

import (
	"context"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
)

// tell writes a line for each node, and then for each change.
func (s *session) tell(ctx context.Context, follower *live.Follower, first live.Snapshot, held bool) error {
	told := changes{held: held, nodes: map[string]string{}}
	lines := told.lines(live.Delta{Nodes: shown(first.Nodes, held), Connection: &first.Connection}, s.now())
	for {
		if len(lines) > 0 {
			if err := writeLines(s.Out, lines); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-follower.Changed():
			lines = told.lines(follower.Take(), s.now())
		}
	}
}

// changes remembers what was told, so that only what reads differently is told.
type changes struct {
	held  bool              // tell of held nodes only, and when they no longer are
	nodes map[string]string // line of each node that was told, but for the time
	lost  time.Time         // since when there is no connection; zero if there is one
}

// lines are what is new in a delta.
func (c *changes) lines(delta live.Delta, now time.Time) print.Lines {
	var lines print.Lines
	if delta.Connection != nil {
		lines = c.connection(*delta.Connection, now)
	}
	for _, n := range delta.Nodes {
		before, known := c.nodes[n.Name]
		line := print.Change(n, time.Time{})
		matches := !c.held || n.State == noderule.Held
		if line == before || !known && !matches {
			continue
		}
		lines = append(lines, print.Change(n, now))
		if c.nodes[n.Name] = line; !matches {
			delete(c.nodes, n.Name)
		}
	}
	for _, name := range delta.Gone {
		if _, known := c.nodes[name]; known {
			lines = append(lines, print.Gone(name, now))
			delete(c.nodes, name)
		}
	}
	return lines
}

// connection is a line when it is lost and one when it is back, not one for each attempt.
func (c *changes) connection(connection live.Connection, now time.Time) print.Lines {
	before := c.lost
	c.lost = connection.Lost
	at := now.Format(time.TimeOnly)
	switch {
	case before.IsZero() && !c.lost.IsZero():
		return print.Lines{at + " not connected, changes are not seen: " + terminal.Clean(connection.Problem)}
	case !before.IsZero() && c.lost.IsZero():
		return print.Lines{at + " connected again after " + view.Age(before, now)}
	}
	return nil
}
