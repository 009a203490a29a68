package plugin

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

func (s *session) pods() *cobra.Command {
	var everywhere, all bool
	var node string
	cmd := &cobra.Command{
		Use:   "pods",
		Short: "Show the pods that wait for their network: for which component, since when",
		Long: `Shows a line a pod and gate of a PodReadinessRule that is closed, the longest waiting on top.
A pod is late if it waits for longer than the deadline of a rule. With --all also pods whose
gates are open, and pods that a rule selects and that do not carry its gate, with why. The last
line counts all of them. The exit code is 0 whether pods wait or not.`,
		Example: `  kubectl readiness pods -A
  kubectl readiness pods -n shop --all -o wide
  kubectl readiness pods -A --node worker-1`,
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "Show pods of all namespaces.")
	cmd.Flags().BoolVar(&all, "all", false, "Show also pods whose gates are open, and pods without a gate.")
	cmd.Flags().StringVar(&node, "node", "", "Show only pods of this node.")
	_ = cmd.RegisterFlagCompletionFunc("node", s.completeNodes)
	out := addOutput(cmd, "wide", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		which := live.PodFilter{Node: node}
		if !everywhere {
			namespace, err := s.namespace()
			if err != nil {
				return err
			}
			which.Namespace = namespace
		}
		source, err := s.source()
		if err != nil {
			return err
		}
		pods, err := source.Pods(cmd.Context(), which)
		if err != nil {
			return err
		}
		if !all {
			pods.Pods = slices.DeleteFunc(pods.Pods, func(p view.Pod) bool { return p.State != view.PodWaiting })
		}
		return out.write(s.Out, pods, func() print.Lines {
			lines := print.Pods(pods, out.wide(), time.Now())
			if len(pods.Pods) == 0 {
				lines = append(print.Lines{noPods(pods.Count, which)}, lines...)
			}
			return lines
		})
	}
	return cmd
}

// noPods says why there is nothing to show.
func noPods(count view.PodCount, which live.PodFilter) string {
	switch {
	case count.All() > 0:
		return "No pod waits. --all shows those that rules select."
	case which.Namespace != "":
		return "No rule selects a pod in namespace " + which.Namespace + ". -A looks at all of them; kubectl get podreadinessrules shows the rules."
	}
	return "No rule selects a pod. kubectl get podreadinessrules shows the rules."
}

// namespace is that of --namespace, else of the kubeconfig's context.
func (s *session) namespace() (string, error) {
	namespace, _, err := s.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("cannot tell which namespace is meant: see --namespace and --context: %w", err)
	}
	return namespace, nil
}
