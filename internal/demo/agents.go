package demo

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/podgate"
)

// nodeAgents are the podgate agents of all nodes: the agent's own code, one for each node, in this
// process. A scenario without rules for pods has none: nil.
type nodeAgents struct {
	// as is the configuration of the agent of a node.
	as func(context.Context, *corev1.Node) (*rest.Config, error)

	mu      sync.Mutex
	running map[string]*agent // by node
}

// agent is the agent of one node.
type agent struct {
	registry *prometheus.Registry
	cancel   context.CancelFunc
	done     chan struct{}
	err      error // when it is done
}

// installAgents makes the account of the agents, which may do what those of a user's cluster may.
func (s *cluster) installAgents(ctx context.Context, root string) error {
	roles, err := readRoles(filepath.Join(root, "charts", "readygate", "files", "podgate-role.yaml"))
	if err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: admission.PodgateAccount}},
	}
	for _, role := range roles {
		objects = append(objects, role, bindingOf(role, admission.ManagerNamespace, admission.PodgateAccount))
	}
	return s.create(ctx, objects...)
}

// asAgent is the configuration of the agent of a node: its token names the node, and with any other token the
// agent may write nothing.
func (s *cluster) asAgent(ctx context.Context, node *corev1.Node) (*rest.Config, error) {
	return s.as(ctx, admission.ManagerNamespace, admission.PodgateAccount, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID})
}

func newAgents(as func(context.Context, *corev1.Node) (*rest.Config, error)) *nodeAgents {
	return &nodeAgents{as: as, running: map[string]*agent{}}
}

// run starts the agent of a node that has joined.
func (a *nodeAgents) run(ctx context.Context, node *corev1.Node) error {
	if a == nil {
		return nil
	}
	config, err := a.as(ctx, node)
	if err != nil {
		return fmt.Errorf("starting the agent of %s: %w", node.Name, err)
	}
	options := podgate.NewOptions()
	options.RestConfig, options.Node, options.Holder, options.Workers = config, node.Name, "demo", 1
	options.MetricsAddr, options.HealthAddr = "0", "0"
	one := &agent{registry: options.Registry, done: make(chan struct{})}
	ctx, one.cancel = context.WithCancel(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[node.Name] = one
	go func() {
		defer close(one.done)
		one.err = options.Run(ctx)
	}()
	return nil
}

// exited returns an error if an agent has ended by itself.
func (a *nodeAgents) exited() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for node, one := range a.running {
		select {
		case <-one.done:
			return fmt.Errorf("the agent of %s has ended: %v", node, one.err)
		default:
		}
	}
	return nil
}

// stop ends all of them, and returns when they have ended.
func (a *nodeAgents) stop() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.running {
		one.cancel()
	}
	for _, one := range a.running {
		<-one.done
	}
	clear(a.running)
}

// lastMetric is the counter of an agent with the component that was the last one to become ready.
const lastMetric = "readygate_podgate_last_component_total"

// last are the components that were the last ones to become ready for pods of a node, by the agent's metrics.
func (a *nodeAgents) last(node string) ([]string, error) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	one := a.running[node]
	a.mu.Unlock()
	if one == nil {
		return nil, fmt.Errorf("node %s has no agent", node)
	}
	return lastOf(one.registry)
}

// lastOf are the components that metrics name as the last ones.
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
