package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
)

func (s *session) simulate() *cobra.Command {
	var nodeDump, ruleDump string
	cmd := &cobra.Command{
		Use:   "simulate -f FILE",
		Short: "Show the effect of rules on the cluster before they are applied",
		Long: `Shows which nodes would be held or released, which requirements are not met, and which nodes would
lose pods, if the rules of the files were applied now. The command changes nothing. A rule of the
files replaces the cluster's rule of the same name. Rules with dryRun are treated as enforced. The
files are linted first.

With --nodes, the nodes come from a file and the command reads no cluster. The time is then that of
the last heartbeat in the file.`,
		Example: `  kubectl readiness simulate -f rule.yaml
  kubectl get nodes -o yaml >nodes.yaml; kubectl readiness simulate -f rule.yaml --nodes nodes.yaml`,
	}
	manifests := addFiles(cmd)
	cmd.Flags().StringVar(&nodeDump, "nodes", "", "File with nodes from kubectl get nodes -o yaml (or json), used instead of the cluster.")
	cmd.Flags().StringVar(&ruleDump, "rules", "", "File with the existing rules from kubectl get nrr -o yaml (or json). Only with --nodes. If not set, there are no existing rules.")
	out := addOutput(cmd, "wide", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if ruleDump != "" && nodeDump == "" {
			return usagef("--rules requires --nodes: rules and nodes must come from the same cluster")
		}
		candidates, err := s.candidates(manifests)
		if err != nil {
			return err
		}
		rules, nodes, err := s.world(cmd.Context(), nodeDump, ruleDump)
		if err != nil {
			return err
		}
		replaced, err := s.refused(rules, candidates)
		if err != nil {
			return err
		}
		now, asOf := time.Now(), time.Time{}
		if nodeDump != "" {
			if asOf = lastHeartbeat(nodes); !asOf.IsZero() {
				now = asOf
			}
		}
		simulation := view.Simulate(rules, candidates, replaced, nodes, now)
		simulation.AsOf = asOf
		return out.write(s.Out, simulation, func() print.Lines { return print.Simulation(simulation, out.wide()) })
	}
	return cmd
}

// candidates returns the rules of the files. It fails if the files have errors.
func (s *session) candidates(manifests *files) ([]*v1alpha1.NodeReadinessRule, error) {
	inputs, err := manifests.read(s.In)
	if err != nil {
		return nil, err
	}
	report, err := lint.Check(inputs, lint.DefaultNodes)
	if err != nil {
		return nil, err
	}
	switch {
	case report.Refused() > 0:
		if err := writeLines(s.ErrOut, print.Findings(report)); err != nil {
			return nil, err
		}
		return nil, errFindings
	case len(report.Rules) == 0 && len(report.PodRules) > 0:
		return nil, errors.New("these files have PodReadinessRules only, and simulate supports NodeReadinessRules; use kubectl readiness lint for both")
	case len(report.Rules) == 0:
		return nil, errors.New("these files have no NodeReadinessRule: is it the right file, or is -R missing?")
	}
	return report.Rules, nil
}

// world returns the existing rules and nodes, from the cluster or from dumps.
func (s *session) world(ctx context.Context, nodeDump, ruleDump string) ([]*v1alpha1.NodeReadinessRule, []*corev1.Node, error) {
	if nodeDump != "" {
		nodes, err := dumped[corev1.Node](nodeDump, "Node")
		if err != nil || ruleDump == "" {
			return nil, nodes, err
		}
		rules, err := dumped[v1alpha1.NodeReadinessRule](ruleDump, "NodeReadinessRule")
		return rules, nodes, err
	}
	source, err := s.source()
	if err != nil {
		return nil, nil, err
	}
	rules, err := source.Rules(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := source.Nodes(ctx)
	return rules, nodes, err
}

// lastHeartbeat returns the time of the last heartbeat in a dump, which is about the time of the dump. Heartbeats are
// then compared with that time, not with today. A node whose clock is ahead of all others is ignored.
func lastHeartbeat(nodes []*corev1.Node) time.Time {
	var beats []time.Time // the last one of each node
	for _, node := range nodes {
		var last time.Time
		for i := range node.Status.Conditions {
			if beat := node.Status.Conditions[i].LastHeartbeatTime.Time; beat.After(last) {
				last = beat
			}
		}
		if !last.IsZero() {
			beats = append(beats, last)
		}
	}
	slices.SortFunc(beats, func(a, b time.Time) int { return b.Compare(a) })
	for i := 1; i < len(beats); i++ {
		if beats[i-1].Sub(beats[i]) <= maxHeartbeatGap {
			return beats[i-1]
		}
	}
	return append(beats, time.Time{})[0]
}

// maxHeartbeatGap is the largest difference between the last heartbeats of two live nodes with correct clocks: kubelets
// write their status at least every five minutes.
const maxHeartbeatGap = 6 * time.Minute

// dumped returns the objects of a kind from the output of kubectl get.
func dumped[T any](path, kind string) ([]*T, error) {
	input, err := readFile(path, maxDump)
	if err != nil {
		return nil, err
	}
	all, err := objectsOf[T](input, kind)
	if err == nil && len(all) == 0 {
		return nil, fmt.Errorf("%s has no %s: create the file with kubectl get -o yaml", path, kind)
	}
	return all, err
}

// objectsOf returns the objects of a kind in a file, with the fields that the API server has set.
func objectsOf[T any](input lint.Input, kind string) ([]*T, error) {
	objects, err := lint.Objects(input)
	if err != nil {
		return nil, err
	}
	var all []*T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		it := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, it); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", input.File, kind, object.GetName(), err)
		}
		all = append(all, it)
	}
	return all, nil
}

// refused prints why the API server would reject changes of existing rules, and returns the names of these rules. Most
// fields of a rule are immutable.
func (s *session) refused(rules, candidates []*v1alpha1.NodeReadinessRule) (names []string, err error) {
	for _, candidate := range candidates {
		i := slices.IndexFunc(rules, func(r *v1alpha1.NodeReadinessRule) bool { return r.Name == candidate.Name })
		if i < 0 {
			continue
		}
		findings, err := lint.Change(rules[i], candidate)
		if err != nil {
			return nil, err
		}
		if len(findings) > 0 {
			names = append(names, candidate.Name)
		}
		for _, f := range findings {
			if _, err := fmt.Fprintf(s.ErrOut, "warning: the API server would reject this change of %s: delete the rule first, as simulated here, or give the new rule another name: %s: %s\n",
				terminal.Clean(f.Object), f.Field, terminal.Clean(f.Message)); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}
