package plugin

import (
	"github.com/spf13/cobra"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/version"
)

// versions are the versions of the client and the manager.
type versions struct {
	Client  string `json:"client"`
	Manager string `json:"manager,omitempty"`
	// NotSeen is the reason why the manager's version could not be read.
	NotSeen string `json:"notSeen,omitempty"`
}

func (s *session) version() *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this command and of the manager",
		Long: `Shows the version of this command, and the manager's version if you may read its Deployment.
--namespace sets the manager's namespace (default readygate-system).`,
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Show only the version of this command; do not contact a cluster.")
	out := addOutput(cmd, "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Client: version.Version}
		if !clientOnly {
			source, err := s.source()
			if err == nil {
				v.Manager, err = source.ManagerVersion(cmd.Context(), s.managerNamespace())
			}
			if err != nil {
				v.NotSeen = err.Error()
			}
		}
		return out.write(s.Out, v, func() print.Lines {
			lines := print.Lines{"Client: " + v.Client}
			switch {
			case v.Manager != "":
				lines = append(lines, "Manager: "+terminal.Clean(v.Manager))
			case v.NotSeen != "":
				lines = append(lines, "Manager: could not be read: "+terminal.Clean(v.NotSeen))
			}
			return lines
		})
	}
	return cmd
}

// managerNamespace returns --namespace, or the default namespace of the manager.
func (s *session) managerNamespace() string {
	if n := s.cluster.Namespace; n != nil && *n != "" {
		return *n
	}
	return admission.ManagerNamespace
}
