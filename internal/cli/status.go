package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/readygate/readygate/internal/cli/text"
)

func (s *session) status() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the rules, how many nodes each selects, holds and has released",
		Long: `Shows a line a rule. STANDING is Enforced, or why it is not; BIRTHS is Covered if the API
server puts the taint on selected nodes as they are created, or why not. Of the nodes that are
held, those are stuck that are held longer than the rule's deadline; of those that are released,
those are limited that stay so only because of maxUnavailable. What only you can mend is said
below the table.`,
		Example: "  kubectl readiness status\n  kubectl readiness status -o wide",
		Args:    cobra.NoArgs,
	}
	out := addOutput(cmd, "wide", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		rules, _, err := s.fleet(cmd.Context(), labels.Everything())
		if err != nil {
			return err
		}
		return out.write(s.Out, map[string]any{"rules": rules}, func() text.Lines { return text.Rules(rules, out.wide(), s.now()) })
	}
	return cmd
}
