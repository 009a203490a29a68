package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/readygate/readygate/internal/cli/text"
)

func (s *session) why() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why NODE",
		Short: "Tell the whole story of one node, and what to do next",
		Long: `Tells which rules speak of the node and what each requires: the current value, since when,
when it was last heard of and who wrote it; what happened to the node; what else keeps pods
away; and what to do next. The exit code is 0 whether the node is held or not.`,
		Example:           "  kubectl readiness why worker-1",
		Args:              oneNode,
		ValidArgsFunction: s.completeNodes,
	}
	out := addOutput(cmd, "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		source, err := s.source()
		if err != nil {
			return err
		}
		story, err := source.Story(cmd.Context(), nodeName(args[0]), s.now)
		if err != nil {
			return err
		}
		return out.write(s.Out, story, func() text.Lines { return text.Story(story, s.now()) })
	}
	return cmd
}

func oneNode(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%d nodes are named, must be one, e.g. kubectl readiness why worker-1", len(args))
	}
	return nil
}

// nodeName takes the name out of the forms that kubectl prints.
func nodeName(arg string) string {
	for _, prefix := range []string{"node/", "nodes/", "no/"} {
		if name, ok := strings.CutPrefix(arg, prefix); ok {
			return name
		}
	}
	return arg
}
