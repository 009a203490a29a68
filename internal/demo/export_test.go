package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
	"github.com/readygate/readygate/internal/scenario"
)

// RulesOf are the rules for nodes that a scenario applies, and PodRulesOf those for pods.
func RulesOf(root, name string) ([]*v1alpha1.NodeReadinessRule, error) {
	return rulesOf[*v1alpha1.NodeReadinessRule](root, name)
}

func PodRulesOf(root, name string) ([]*podv1alpha1.PodReadinessRule, error) {
	return rulesOf[*podv1alpha1.PodReadinessRule](root, name)
}

func rulesOf[T client.Object](root, name string) ([]T, error) {
	s, err := readScript(root, name)
	if err != nil {
		return nil, err
	}
	var rules []T
	for _, rule := range s.rules {
		if rule, is := rule.(T); is {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// Monitor lets tests be the cluster that is watched.
type Monitor struct{ *monitor }

func NewMonitor(now func() time.Time) Monitor { return Monitor{newMonitor(now)} }

// MonitorOf has the requirements of the rules for pods of a scenario.
func MonitorOf(now func() time.Time, root, name string) (Monitor, error) {
	s, err := readScript(root, name)
	if err != nil {
		return Monitor{}, err
	}
	w := newMonitor(now)
	w.requirements = s.requirements()
	return Monitor{w}, nil
}

func (w Monitor) EarlyReady() ([]string, int)    { return w.earlyReady() }
func (w Monitor) PodStates() []scenario.PodState { return w.podStates() }

func (w Monitor) Joins(node string, taints ...corev1.Taint) { w.joins(node, taints) }
func (w Monitor) ObserveNode(node *corev1.Node)             { w.observeNode(node) }
func (w Monitor) ObservePod(pod *corev1.Pod)                { w.observePod(pod) }
func (w Monitor) Early() ([]string, int)                    { return w.earlyPods() }
func (w Monitor) LostTaints() ([]string, int)               { return w.lostTaints() }
func (w Monitor) UnheldReboots() ([]string, int)            { return w.unheldReboots() }
func (w Monitor) Numbers() string                           { return w.numbers() }
func (w Monitor) Count() (int, int, map[string]int)         { return w.count() }

// Lines is a drawing of these nodes.
func Lines(nodes []view.Node, pods map[string]int, now time.Time, columns, rows int) []string {
	return (&frame{title: "A story", step: "a step", url: "http://127.0.0.1:1", nodes: nodes, pods: pods, now: now, running: 3, waiting: 1, columns: columns, rows: rows}).lines()
}

// LinesOfPods is a drawing of these nodes, with pods that wait for their network.
func LinesOfPods(nodes []view.Node, closed []view.Pod, ready int, now time.Time) []string {
	f := &frame{title: "A story", step: "a step", url: "http://127.0.0.1:1", nodes: nodes, closed: closed, ready: ready, gated: ready + len(closed), now: now, columns: 120, rows: 30}
	return f.lines()
}

// PrintPods writes what is printed without a terminal if these pods wait at successive moments.
func PrintPods(w io.Writer, nodes []view.Node, moments ...[]view.Pod) {
	t, said := &output{screen: terminal.NewScreen(w, false)}, map[string]string{}
	for _, closed := range moments {
		t.printPods(said, &frame{nodes: nodes, closed: closed})
	}
}

// PrintStep writes what is printed for a step, and for an expectation with this text.
func PrintStep(w io.Writer, step *scenario.Step, expected string) {
	t := &output{screen: terminal.NewScreen(w, false)}
	t.step(step)
	t.proof(proof{text: expected})
	t.proof(proof{text: expected, err: errors.New("no")})
}

// Endpoints serves the components of nodes.
type Endpoints struct{ *endpoints }

func ServeEndpoints(ctx context.Context) (Endpoints, error) {
	e, err := serveEndpoints(ctx)
	return Endpoints{e}, err
}

func (e Endpoints) URL(node, component string) string { return e.url(node, component) }
func (e Endpoints) SetHealth(node, component string, is scenario.Health) {
	e.setHealth(node, component, is)
}
func (e Endpoints) Close() error { return e.close() }

// Reporters are those of a scenario whose nodes run these components.
type Reporters struct{ *nodeReporters }

func NewReporters(dir string, e Endpoints, components map[string]scenario.Component) Reporters {
	return Reporters{newReporters(dir, nodestatus.Connection{}, e.endpoints, components)}
}

func (r Reporters) Install(node string, components ...string) error {
	return r.install(node, components)
}
func (r Reporters) Run(ctx context.Context, node string, run bool) error {
	return r.run(ctx, node, run)
}
func (r Reporters) ShutDown(node string)                            { r.shutDown(node) }
func (r Reporters) BootNode(ctx context.Context, node string) error { return r.boot(ctx, node) }
func (r Reporters) Stop()                                           { r.stop() }
func (r Reporters) Runs(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[node] != nil
}

// Config is the configuration of the reporter of a node.
func (r Reporters) Config(node string) (*reporter.Config, error) {
	data, err := os.ReadFile(r.files[node])
	if err != nil {
		return nil, err
	}
	return reporter.ParseConfig(data)
}

// PodComponents are the components of a scenario that set conditions of pods.
type PodComponents struct{ *podComponents }

// SetCondition is a condition that a component set.
type SetCondition struct {
	Component string
	Pod       string
	Condition corev1.PodCondition
}

// NewPodComponents sends the conditions that they set to a channel.
func NewPodComponents(components map[string]scenario.Component, said chan<- SetCondition) PodComponents {
	p := newPodComponents(components)
	p.write = func(_ context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error {
		said <- SetCondition{component, pod.Name, condition}
		return nil
	}
	return PodComponents{p}
}

func (p PodComponents) Sets(component string) bool                   { return p.sets(component) }
func (p PodComponents) Observe(ctx context.Context, pod *corev1.Pod) { p.observe(ctx, pod) }
func (p PodComponents) SetHealth(ctx context.Context, node, component string, is scenario.Health) {
	p.setHealth(ctx, node, component, is)
}
func (p PodComponents) Stop() { p.stop() }

// LastOf are the components that metrics of an agent name as the last ones.
func LastOf(metrics prometheus.Gatherer) ([]string, error) { return lastOf(metrics) }

// SandboxGone and SandboxThere are the status of a pod that loses its sandbox, and gets another one.
func SandboxGone() map[string]any { return sandboxGone() }
func SandboxThere(pod *corev1.Pod, n int) map[string]any {
	return sandboxThere(pod, address(n))
}

// InvariantFails is the error of an invariant with this number of observations and these violations.
func InvariantFails(checks int, broken ...string) error {
	return invariantProof("it", broken, checks).err
}
