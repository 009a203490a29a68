package plugin

import (
	"context"
	"fmt"
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

// pace is the time between two looks at what changed: more often helps no eye.
const pace = 250 * time.Millisecond

func (s *session) watch() *cobra.Command {
	var held bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show the nodes and keep the picture up to date",
		Long: `Shows a line a node, held nodes first, and draws them again in place as they change. Where
the output is no terminal, it writes a line a change. While the cluster does not answer, it
says so and tries again by itself. Ctrl-C ends it.`,
		Example: "  kubectl readiness watch --held\n  kubectl readiness watch | tee changes.log",
		Args:    cobra.NoArgs,
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
		return s.tell(cmd.Context(), follower, snapshot, held)
	}
	return cmd
}

// shown are the nodes to show, held ones first.
func shown(nodes []view.Node, held bool) []view.Node {
	if held {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n view.Node) bool { return n.State != noderule.Held })
	}
	slices.SortFunc(nodes, view.CompareNodes)
	return nodes
}

// redraw keeps the picture on a terminal up to date until the context is over. Ages count on,
// so it is drawn every second even if nothing changed.
func (s *session) redraw(ctx context.Context, fleet *live.Fleet, follower *live.Follower, held bool) {
	screen := terminal.NewScreen(s.Out, true)
	defer screen.Close()
	if s.verbosity.given { // what the client has to say would be written into the picture
		klog.SetLogger(funcr.New(func(_, args string) { screen.Print(terminal.Clean(args)) }, funcr.Options{Verbosity: s.verbosity.level}))
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for quiet := time.Duration(0); ; quiet += pace {
		select {
		case <-follower.Changed():
			follower.Take()
			quiet = 0
		default:
		}
		if quiet%time.Second == 0 {
			_, rows := screen.Size()
			screen.Draw(picture(fleet.Snapshot(), held, rows, s.now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// picture is what fits into so many rows: whether it still is so, how many nodes there are, and
// the first of them.
func picture(fleet live.Snapshot, held bool, rows int, now time.Time) print.Lines {
	var lines print.Lines
	if lost := fleet.Connection.Lost; !lost.IsZero() {
		lines = append(lines, "Not connected for "+view.Age(lost, now)+": what follows is as it was then.", terminal.Clean(fleet.Connection.Problem), "")
	}
	lines = append(lines, print.Tally(fleet.Nodes)+" (Ctrl-C ends)", "")
	nodes := shown(fleet.Nodes, held)
	if len(nodes) == 0 {
		return append(lines, "No node to show.")
	}
	room := max(1, rows-len(lines)-3) // header, rest and cursor
	first := nodes[:min(len(nodes), room)]
	lines = append(lines, print.Nodes(first, false, now)...)
	if rest := len(nodes) - len(first); rest > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", rest))
	}
	return lines
}
