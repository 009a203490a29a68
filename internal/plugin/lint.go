package plugin

import (
	"github.com/spf13/cobra"

	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/plugin/print"
)

func (s *session) lint() *cobra.Command {
	var strict bool
	nodes := lint.DefaultNodes
	cmd := &cobra.Command{
		Use:   "lint -f FILE",
		Short: "Check manifests before they are applied, without a cluster",
		Long: `Checks NodeReadinessRules and PodReadinessRules in the same way as the API server (schema,
expressions, unknown and duplicate fields), and checks the rules against each other. It also warns
about valid rules that cause problems: nodes that are created without the taint, evictions,
reporters that do not tolerate the taint of their own rule, conditions without a reporter, and
gates that cannot open. The files may contain other kinds.

Exit code 3 if there are errors; with --strict also if there are warnings.`,
		Example: `  kubectl readiness lint -f rule.yaml
  kubectl readiness lint -R -f deploy/ --strict
  kustomize build . | kubectl readiness lint -f -`,
	}
	manifests := addFiles(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "Also exit with code 3 if there are warnings.")
	cmd.Flags().IntVar(&nodes, "nodes", nodes, "Number of nodes for which the cost of heartbeats is estimated.")
	out := addOutput(cmd, "json", "yaml")
	cmd.RunE = func(*cobra.Command, []string) error {
		inputs, err := manifests.read(s.In)
		if err != nil {
			return err
		}
		report, err := lint.Check(inputs, nodes)
		if err != nil {
			return err
		}
		if err := out.write(s.Out, report, func() print.Lines { return print.Findings(report) }); err != nil {
			return err
		}
		if report.Count(lint.Error) > 0 || strict && report.Count(lint.Warning) > 0 {
			return errFindings
		}
		return nil
	}
	return cmd
}
