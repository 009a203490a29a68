package plugin

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

func (s *session) nodes() *cobra.Command {
	var selector string
	var held bool
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show the nodes: which rules hold them, what is missing, and since when",
		Long: `Shows one line per node. Held nodes come first, the longest held at the top. A node is stuck if a
rule has held it for longer than the rule's deadline. A node is limited if a rule leaves it
released only because of maxUnavailable. If a reported condition counts as Unknown, the line shows
the reason.`,
		Example: `  kubectl readiness nodes --held
  kubectl readiness nodes -l example.com/pool=workers -o wide`,
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "Show only nodes that match this label selector, e.g. -l example.com/pool=workers.")
	cmd.Flags().BoolVar(&held, "held", false, "Show only nodes that are held.")
	out := addOutput(cmd, "wide", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		chosen, err := labels.Parse(selector)
		if err != nil {
			return usagef("--selector is %q, must be labels, e.g. example.com/pool=workers: %w", selector, err)
		}
		source, err := s.source()
		if err != nil {
			return err
		}
		_, nodes, err := s.fleet(cmd.Context(), source, chosen)
		if err != nil {
			return err
		}
		all := len(nodes)
		if held {
			nodes = slices.DeleteFunc(nodes, func(n view.Node) bool { return n.State != noderule.Held })
		}
		return out.write(s.Out, map[string]any{"nodes": nodes}, func() print.Lines {
			if len(nodes) == 0 {
				return print.Lines{noNodes(all, selector)}
			}
			return print.Nodes(nodes, out.wide(), time.Now())
		})
	}
	return cmd
}

// noNodes returns why there is nothing to show.
func noNodes(all int, selector string) string {
	switch {
	case all > 0:
		return "No node is held. To list all nodes: kubectl readiness nodes"
	case selector != "":
		return "No node matches the selector. To list the labels: kubectl get nodes --show-labels"
	}
	return "This cluster has no nodes."
}
