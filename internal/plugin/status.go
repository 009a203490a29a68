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
		Long: `Shows one line per rule, NodeReadinessRules first. Problems that need your action are listed below
the table.

  STANDING     Enforced, or the reason why the rule is not enforced.
  AT-CREATION  PolicyActive if the API server adds the taint to selected nodes when they are created,
               or the reason why it does not.
  stuck        Held nodes that are held for longer than the rule's deadline.
  limited      Released nodes that are released only because of maxUnavailable.
  late         Waiting pods that have waited for longer than the rule's deadline.

The agents count the pods of their nodes. The counts exclude pods that are not scheduled, and can be
half a minute old.`,
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
