package plugin

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/readygate/readygate/internal/plugin/print"
)

func (s *session) status() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the rules: how many nodes each selects, holds and has released, and how many pods wait",
		Long: `Shows a line a rule, those of nodes first. STANDING is Enforced, or why it is not; AT-CREATION is
PolicyActive if the API server puts the taint on selected nodes as they are created, or why not. Of
the nodes that are held, those are stuck that are held longer than the rule's deadline; of those
that are released, those are limited that stay so only because of maxUnavailable. Of the pods
that wait, those are late that wait longer than the rule's deadline; they are counted on their
nodes, so the counts are without pods that are on none, and can be half a minute old. What only
you can mend is said below the table.`,
		Example: "  kubectl readiness status\n  kubectl readiness status -o wide",
	}
	out := addOutput(cmd, "wide", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		source, err := s.source()
		if err != nil {
			return err
		}
		rules, _, err := s.fleet(cmd.Context(), source, labels.Everything())
		if err != nil {
			return err
		}
		podRules, unseen, err := source.PodRuleRows(cmd.Context())
		if err != nil {
			return err
		}
		all := map[string]any{"rules": rules, "podRules": podRules}
		if len(unseen) > 0 {
			all["unseen"] = unseen
		}
		return out.write(s.Out, all, func() print.Lines { return print.Status(rules, podRules, unseen, out.wide(), time.Now()) })
	}
	return cmd
}
