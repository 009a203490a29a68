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
		Short: "Check manifests before they are applied; needs no cluster",
		Long: `Checks rules of nodes and of pods as the API server does (schema, expressions, unknown and
repeated fields), rules against each other, and warns of what applies and will hurt: nodes
that are created without the taint, evictions, reporters that do not tolerate the taint that they are to lift,
conditions that nobody reports, gates that cannot open. Other kinds in the files are fine.

Exit code 3 if there are errors; with --strict also if there are warnings.`,
		Example: `  kubectl readiness lint -f rule.yaml
  kubectl readiness lint -R -f deploy/ --strict
  kustomize build . | kubectl readiness lint -f -`,
	}
	manifests := addFiles(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "Fail on warnings too.")
	cmd.Flags().IntVar(&nodes, "nodes", nodes, "How many nodes to count with, where something costs writes.")
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
