package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/podgate"
)

// runAgent runs podgate for a node in this process. The token of the agent names the node: a policy rejects the writes of
// an agent with any other token.
func (s *session) runAgent(ctx context.Context, node *corev1.Node) error {
	config, err := s.as(ctx, admission.ManagerNamespace, admission.PodgateAccount, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID})
	if err != nil {
		return fmt.Errorf("starting the agent of %s: %w", node.Name, err)
	}
	options := podgate.NewOptions()
	options.RestConfig, options.Node, options.Holder, options.Workers = config, node.Name, "demo", 1
	options.MetricsAddr, options.HealthAddr = "0", "0"
	s.agents[node.Name] = options.Registry
	s.runProgram(ctx, "the podgate agent of "+node.Name, options.Run)
	return nil
}

// lastMetric is the counter of an agent with the component that was the last one to become ready.
const lastMetric = "readygate_podgate_last_component_total"

// lastComponents returns the components that were the last ones to become ready for pods of a node, from the metrics of
// its agent.
func (s *session) lastComponents(node string) ([]string, error) {
	metrics := s.agents[node]
	if metrics == nil {
		return nil, fmt.Errorf("node %s has no agent", node)
	}
	return lastOf(metrics)
}

// lastOf returns the components that metrics name as the last ones.
func lastOf(metrics prometheus.Gatherer) ([]string, error) {
	families, err := metrics.Gather()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, family := range families {
		if family.GetName() != lastMetric {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "component" && metric.GetCounter().GetValue() > 0 {
					found[label.GetValue()] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
