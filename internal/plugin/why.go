package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/print"
)

func (s *session) why() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why NODE | pod/NAME",
		Short: "Explain the state of one node or pod, and what to do next",
		Long: `For a node, shows the rules that select it and the requirements of each rule: the current value,
since when, the last heartbeat and the writer. It also shows the node's events, other taints that
keep pods away, and what to do next.

For a pod, shows which gates are closed, which components are not ready, and the state of the latch
and of the agent of its node, or why no rule selects the pod.

The exit code is 0 whether the node or pod is held or not.`,
		Example: `  kubectl readiness why worker-1
  kubectl readiness why pod/web-1 -n shop`,
		Args:              oneSubject,
		ValidArgsFunction: s.completeSubjects,
	}
	out := addOutput(cmd, "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		isPod, name, err := subjectOf(args)
		if err != nil {
			return err
		}
		source, err := s.source()
		if err != nil {
			return err
		}
		if isPod {
			return s.whyPod(cmd.Context(), source, name, out)
		}
		explanation, err := source.Explanation(cmd.Context(), name)
		switch {
		case apierrors.IsNotFound(err) && len(args) == 1 && !strings.Contains(args[0], "/"):
			return fmt.Errorf("%w; if it is a pod: kubectl readiness why pod/%s, with -n for its namespace", err, name)
		case err != nil:
			return err
		}
		return out.write(s.Out, explanation, func() print.Lines { return print.Explanation(explanation, time.Now()) })
	}
	return cmd
}

func (s *session) whyPod(ctx context.Context, source *live.Source, name string, out *output) error {
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	explanation, err := source.PodExplanation(ctx, namespace, name)
	if err != nil {
		return err
	}
	return out.write(s.Out, explanation, func() print.Lines { return print.PodExplanation(explanation, time.Now()) })
}

// The names and short names of the kinds, as in kubectl.
var (
	nodeKinds = []string{"node", "nodes", "no"}
	podKinds  = []string{"pod", "pods", "po"}
)

const subjectExamples = "e.g. kubectl readiness why worker-1, or kubectl readiness why pod/web-1 -n shop"

func oneSubject(_ *cobra.Command, args []string) error {
	if len(args) == 1 || len(args) == 2 && slices.Contains(slices.Concat(nodeKinds, podKinds), args[0]) {
		return nil
	}
	return usagef("got %d arguments, must be one node or one pod, %s", len(args), subjectExamples)
}

// subjectOf parses kind and name in the forms that kubectl accepts and prints. A name alone is a node.
func subjectOf(args []string) (isPod bool, name string, err error) {
	kind, name := nodeKinds[0], args[len(args)-1]
	if len(args) == 2 {
		kind = args[0]
	} else if before, after, found := strings.Cut(name, "/"); found {
		kind, name = before, after
	}
	switch isPod = slices.Contains(podKinds, kind); {
	case !isPod && !slices.Contains(nodeKinds, kind):
		return false, "", usagef("%q is neither a node nor a pod, %s", args[0], subjectExamples)
	case name == "":
		return false, "", usagef("%q has no name, %s", args[0], subjectExamples)
	case strings.Contains(name, "/"):
		return false, "", usagef("%q is not a valid name, a name has no '/': set the namespace with -n, %s", name, subjectExamples)
	}
	return isPod, name, nil
}

// completeSubjects completes the names of nodes; after pod/, the names of pods.
func (s *session) completeSubjects(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, _, found := strings.Cut(typed, "/")
	prefix := kind + "/"
	if len(args) == 1 {
		kind, prefix, found = args[0], "", true
	}
	if !found || !slices.Contains(podKinds, kind) {
		return s.completeNodes(cmd, args, typed)
	}
	namespace, err := s.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return s.completeNames(cmd, "Pod", namespace, prefix)
}
