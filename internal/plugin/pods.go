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
		Short: "Show the pods that wait for their network: for which component, and since when",
		Long: `Shows one line per pod and closed gate, the longest waiting pod at the top. A pod is late if it has
waited for longer than the deadline of a rule. With --all, the output also has the pods whose gates
are open, and the pods that a rule selects but that do not carry its gate, with the reason. The
last line counts the pods. The exit code is 0 whether pods wait or not.`,
		Example: `  kubectl readiness pods -A
  kubectl readiness pods -n shop --all -o wide
  kubectl readiness pods -A --node worker-1`,
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "Show the pods of all namespaces.")
	cmd.Flags().BoolVar(&all, "all", false, "Also show pods whose gates are open, and selected pods without a gate.")
	cmd.Flags().StringVar(&node, "node", "", "Show only the pods of this node.")
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

// noPods returns why there is nothing to show.
func noPods(count view.PodCount, which live.PodFilter) string {
	switch {
	case count.All() > 0:
		return "No pod waits. Use --all to show all pods that rules select."
	case which.Namespace != "":
		return "No rule selects a pod in namespace " + which.Namespace + ". Use -A for all namespaces. To list the rules: kubectl get podreadinessrules"
	}
	return "No rule selects a pod. To list the rules: kubectl get podreadinessrules"
}

// namespace returns the namespace of --namespace, else of the kubeconfig's context.
func (s *session) namespace() (string, error) {
	namespace, _, err := s.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the kubeconfig: %w; check --namespace and --context", err)
	}
	return namespace, nil
}
