package plugin

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
)

// redrawInterval is the time between two redraws.
const redrawInterval = 250 * time.Millisecond

func (s *session) watch() *cobra.Command {
	var held bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show the nodes and update the table as they change",
		Long: `Shows one line per node, held nodes first, and redraws the table as nodes change. If the output is
not a terminal, the command writes one line per change. If the cluster does not respond, the command
shows that and retries. Ctrl-C stops the command.`,
		Example: "  kubectl readiness watch --held\n  kubectl readiness watch | tee changes.log",
	}
	cmd.Flags().BoolVar(&held, "held", false, "Show only nodes that are held.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		source, err := s.source()
		if err != nil {
			return err
		}
		fleet, err := source.Follow(cmd.Context(), false)
		if err != nil {
			return err
		}
		follower, snapshot := fleet.Follow()
		defer follower.Stop()
		if file, ok := s.Out.(*os.File); ok && terminal.IsTerminal(file) {
			s.redraw(cmd.Context(), fleet, follower, held)
			return nil
		}
		return s.writeChanges(cmd.Context(), follower, snapshot, held)
	}
	return cmd
}

// shown returns the nodes to show, held nodes first.
func shown(nodes []view.Node, held bool) []view.Node {
	if held {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n view.Node) bool { return n.State != noderule.Held })
	}
	slices.SortFunc(nodes, view.CompareNodes)
	return nodes
}

// redraw updates the table on a terminal until the context ends. It redraws once per second without changes, because
// ages grow.
func (s *session) redraw(ctx context.Context, fleet *live.Fleet, follower *live.Follower, held bool) {
	screen := terminal.NewScreen(s.Out, true)
	defer screen.Close()
	if s.logs { // the log must not overwrite the table; klog has filtered it by -v
		klog.SetLogger(funcr.New(func(_, args string) { screen.Print(terminal.Clean(args)) }, funcr.Options{Verbosity: math.MaxInt}))
	}
	tick := time.NewTicker(redrawInterval)
	defer tick.Stop()
	for quiet := time.Duration(0); ; quiet += redrawInterval {
		select {
		case <-follower.Changed():
			follower.Take()
			quiet = 0
		default:
		}
		if quiet%time.Second == 0 {
			_, rows := screen.Size()
			screen.Draw(picture(fleet.Snapshot(), held, rows, time.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// picture returns what fits into this number of rows: the connection if it is lost, the counts, and the first nodes.
func picture(fleet live.Snapshot, held bool, rows int, now time.Time) print.Lines {
	var lines print.Lines
	if lost := fleet.Connection.Lost; !lost.IsZero() {
		lines = append(lines, "Not connected for "+view.Age(lost, now)+": the table shows the state from before.", terminal.Clean(fleet.Connection.Problem), "")
	}
	lines = append(lines, print.Tally(fleet.Nodes)+" (Ctrl-C to stop)", "")
	nodes := shown(fleet.Nodes, held)
	if len(nodes) == 0 {
		return append(lines, "No nodes to show.")
	}
	room := max(1, rows-len(lines)-3) // header, rest and cursor
	first := nodes[:min(len(nodes), room)]
	lines = append(lines, print.Nodes(first, false, now)...)
	if rest := len(nodes) - len(first); rest > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", rest))
	}
	return lines
}

// writeChanges writes one line per node, and then one line per change.
func (s *session) writeChanges(ctx context.Context, follower *live.Follower, first live.Snapshot, held bool) error {
	seen := changes{held: held, nodes: map[string]string{}}
	lines := seen.lines(live.Delta{Nodes: shown(first.Nodes, held), Connection: &first.Connection}, time.Now())
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
			lines = seen.lines(follower.Take(), time.Now())
		}
	}
}

// changes keeps the written lines, so that only changed lines are written again.
type changes struct {
	held  bool              // write only held nodes, and their release
	nodes map[string]string // the last line per node, without the time
	lost  time.Time         // when the connection was lost; zero while connected
}

// lines returns the lines for the changes in a delta.
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

// connection returns one line when the connection is lost and one when it is back, not one per attempt.
func (c *changes) connection(connection live.Connection, now time.Time) print.Lines {
	before := c.lost
	c.lost = connection.Lost
	at := now.Format(time.TimeOnly)
	switch {
	case before.IsZero() && !c.lost.IsZero():
		return print.Lines{at + " not connected, changes are not shown: " + terminal.Clean(connection.Problem)}
	case !before.IsZero() && c.lost.IsZero():
		return print.Lines{at + " connected again after " + view.Age(before, now)}
	}
	return nil
}
