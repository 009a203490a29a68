package cli

import (
	"context"
	"time"

	"github.com/readygate/readygate/internal/cli/text"
	"github.com/readygate/readygate/internal/live"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/terminal"
	"github.com/readygate/readygate/internal/view"
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
func (c *changes) lines(delta live.Delta, now time.Time) text.Lines {
	var lines text.Lines
	if delta.Connection != nil {
		lines = c.connection(*delta.Connection, now)
	}
	for _, n := range delta.Nodes {
		before, known := c.nodes[n.Name]
		line := text.Change(n, time.Time{})
		matches := !c.held || n.State == readiness.Held
		if line == before || !known && !matches {
			continue
		}
		lines = append(lines, text.Change(n, now))
		if c.nodes[n.Name] = line; !matches {
			delete(c.nodes, n.Name)
		}
	}
	for _, name := range delta.Gone {
		if _, known := c.nodes[name]; known {
			lines = append(lines, text.Gone(name, now))
			delete(c.nodes, name)
		}
	}
	return lines
}

// connection is a line when it is lost and one when it is back, not one for each attempt.
func (c *changes) connection(connection live.Connection, now time.Time) text.Lines {
	before := c.lost
	c.lost = connection.Lost
	at := now.Format(time.TimeOnly)
	switch {
	case before.IsZero() && !c.lost.IsZero():
		return text.Lines{at + " not connected, changes are not seen: " + terminal.Clean(connection.Problem)}
	case !before.IsZero() && c.lost.IsZero():
		return text.Lines{at + " connected again after " + view.Age(before, now)}
	}
	return nil
}
