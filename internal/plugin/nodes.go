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
		Short: "Show the nodes: held by which rule, what is missing, since when",
		Long: `Shows a line a node, held nodes first, the longest held on top. A node is stuck if a rule holds
it for longer than its deadline, and limited if a rule leaves it released only because of
maxUnavailable. A condition that is reported and not believed says why.`,
		Example: `  kubectl readiness nodes --held
  kubectl readiness nodes -l example.com/pool=workers -o wide`,
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "Show only nodes with these labels, e.g. -l example.com/pool=workers.")
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

// noNodes says why there is nothing to show.
func noNodes(all int, selector string) string {
	switch {
	case all > 0:
		return "No node is held. kubectl readiness nodes shows all of them."
	case selector != "":
		return "No node has these labels. kubectl get nodes --show-labels shows which they have."
	}
	return "This cluster has no nodes."
}
