package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
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

// RulesOf returns the rules for nodes that a scenario applies, and PodRulesOf those for pods.
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

// Monitor lets tests pass objects to a monitor.
type Monitor struct{ *monitor }

func NewMonitor(now func() time.Time) Monitor { return Monitor{newMonitor(now)} }

// MonitorOf returns a monitor with the requirements of the pod rules of a scenario.
func MonitorOf(now func() time.Time, root, name string) (Monitor, error) {
	s, err := readScript(root, name)
	if err != nil {
		return Monitor{}, err
	}
	w := newMonitor(now)
	w.requirements = s.requirements()
	return Monitor{w}, nil
}

// EarlyPods, LostTaints, UnheldBoots and EarlyReady are the violations of an invariant, and the number of observations.
func (w Monitor) EarlyPods() ([]string, int)   { return w.violations(scenario.NoEarlyPod) }
func (w Monitor) LostTaints() ([]string, int)  { return w.violations(scenario.ForeignTaintsStay) }
func (w Monitor) UnheldBoots() ([]string, int) { return w.violations(scenario.HeldBeforeBack) }
func (w Monitor) EarlyReady() ([]string, int)  { return w.violations(scenario.NoEarlyReady) }

func (w Monitor) PodStates() []scenario.PodState            { return w.podStates() }
func (w Monitor) Joins(node string, taints ...corev1.Taint) { w.joins(node, taints) }
func (w Monitor) ObserveNode(node *corev1.Node)             { w.observeNode(node) }
func (w Monitor) ObservePod(pod *corev1.Pod)                { w.observePod(pod) }
func (w Monitor) Numbers() string                           { return w.numbers() }

// Count returns the numbers of running and waiting pods, and of pods per node.
func (w Monitor) Count() (running, waiting int, on map[string]int) {
	var f frame
	f.count(w.podStates())
	return f.running, f.waiting, f.pods
}

// Lines returns a frame of these nodes.
func Lines(nodes []view.Node, pods map[string]int, now time.Time, columns, rows int) []string {
	return (&frame{title: "A title", step: "a step", url: "http://127.0.0.1:1", nodes: nodes, pods: pods, now: now, running: 3, waiting: 1, columns: columns, rows: rows}).lines()
}

// LinesOfPods returns a frame of these nodes, with pods that wait for their network.
func LinesOfPods(nodes []view.Node, closed []view.Pod, ready int, now time.Time) []string {
	f := &frame{title: "A title", step: "a step", url: "http://127.0.0.1:1", nodes: nodes, closed: closed, ready: ready, gated: ready + len(closed), now: now, columns: 120, rows: 30}
	return f.lines()
}

// PrintPods writes the output without a terminal for these waiting pods at successive moments.
func PrintPods(w io.Writer, nodes []view.Node, moments ...[]view.Pod) {
	t := &output{screen: terminal.NewScreen(w, false), printed: map[string]string{}}
	for _, closed := range moments {
		t.printChanges(&frame{nodes: nodes, closed: closed})
	}
}

// PrintStep writes the output for a step, and for an expectation with this text.
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
	return Reporters{newReporters(dir, nodestatus.Connection{}, e.endpoints, components, &errgroup.Group{})}
}

func (r Reporters) Install(node string, components ...string) error {
	return r.install(node, components)
}
func (r Reporters) Run(ctx context.Context, node string, run bool) error {
	return r.run(ctx, node, run)
}
func (r Reporters) ShutDown(node string)                            { r.shutDown(node) }
func (r Reporters) BootNode(ctx context.Context, node string) error { return r.boot(ctx, node) }

// Wait waits until all have ended, with the context of Run.
func (r Reporters) Wait() error { return r.programs.Wait() }

func (r Reporters) Runs(node string) bool { return r.nodes[node].stop != nil }

// Config is the configuration of the reporter of a node.
func (r Reporters) Config(node string) (*reporter.Config, error) {
	data, err := os.ReadFile(r.nodes[node].file)
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
func NewPodComponents(components map[string]scenario.Component, set chan<- SetCondition) PodComponents {
	write := func(_ context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error {
		set <- SetCondition{component, pod.Name, condition}
		return nil
	}
	return PodComponents{newPodComponents(components, write, &errgroup.Group{})}
}

func (p PodComponents) Sets(component string) bool                   { return p.sets(component) }
func (p PodComponents) Observe(ctx context.Context, pod *corev1.Pod) { p.observe(ctx, pod) }
func (p PodComponents) SetHealth(ctx context.Context, node, component string, is scenario.Health) {
	p.setHealth(ctx, node, component, is)
}

// Wait waits until no component programs a pod.
func (p PodComponents) Wait() error { return p.programs.Wait() }

// LastOf are the components that metrics of an agent name as the last ones.
func LastOf(metrics prometheus.Gatherer) ([]string, error) { return lastOf(metrics) }

// SandboxGone and SandboxThere are the status of a pod that loses its sandbox, and gets another one.
func SandboxGone() map[string]any { return sandboxGone() }
func SandboxThere(pod *corev1.Pod, n int) map[string]any {
	return sandboxThere(pod, address(n))
}

// InvariantFails is the error of an invariant with this number of observations and these violations.
func InvariantFails(checks int, violations ...string) error {
	return invariantProof("it", violations, checks).err
}

// RunProgram runs a program in a session. The context ends with the session, and wait returns the session's error.
func RunProgram(ctx context.Context, name string, run func(context.Context) error) (running context.Context, wait func() error) {
	s := &session{}
	s.programs, running = errgroup.WithContext(ctx)
	s.runProgram(running, name, run)
	return running, s.programs.Wait
}
