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

// Witness lets tests be the cluster that is watched.
type Witness struct{ *witness }

func NewWitness(now func() time.Time) Witness { return Witness{newWitness(now)} }

// WitnessOf knows what the components of a scenario's rules for pods have to say.
func WitnessOf(now func() time.Time, root, name string) (Witness, error) {
	s, err := readScript(root, name)
	if err != nil {
		return Witness{}, err
	}
	w := newWitness(now)
	w.wants = s.wants()
	return Witness{w}, nil
}

func (w Witness) Unsaid() ([]string, int)        { return w.unsaid() }
func (w Witness) PodStates() []scenario.PodState { return w.podStates() }

func (w Witness) Joins(node string, taints ...corev1.Taint) { w.joins(node, taints) }
func (w Witness) SawNode(node *corev1.Node)                 { w.sawNode(node) }
func (w Witness) SawPod(pod *corev1.Pod)                    { w.sawPod(pod) }
func (w Witness) Early() ([]string, int)                    { return w.early() }
func (w Witness) Taken() ([]string, int)                    { return w.taken() }
func (w Witness) Unready() ([]string, int)                  { return w.unready() }
func (w Witness) Numbers() string                           { return w.numbers() }
func (w Witness) Count() (int, int, map[string]int)         { return w.count() }

// Lines is a drawing of these nodes.
func Lines(nodes []view.Node, pods map[string]int, now time.Time, columns, rows int) []string {
	return (&frame{title: "A story", step: "a step", url: "http://127.0.0.1:1", nodes: nodes, pods: pods, now: now, running: 3, waiting: 1, columns: columns, rows: rows}).lines()
}

// LinesOfPods is a drawing of these nodes, with pods that wait for their network.
func LinesOfPods(nodes []view.Node, closed []view.Pod, ready int, now time.Time) []string {
	f := &frame{title: "A story", step: "a step", url: "http://127.0.0.1:1", nodes: nodes, closed: closed, ready: ready, gated: ready + len(closed), now: now, columns: 120, rows: 30}
	return f.lines()
}

// TellPods writes what is told where there is no terminal when pods wait for these, and then for those.
func TellPods(w io.Writer, nodes []view.Node, moments ...[]view.Pod) {
	t, said := &teller{screen: terminal.NewScreen(w, false)}, map[string]string{}
	for _, closed := range moments {
		t.sayPods(said, &frame{nodes: nodes, closed: closed})
	}
}

// Tell writes what is told of a step, and of an expectation with this text.
func Tell(w io.Writer, step *scenario.Step, expected string) {
	t := &teller{screen: terminal.NewScreen(w, false)}
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

func (e Endpoints) URL(node, component string) string               { return e.url(node, component) }
func (e Endpoints) Turn(node, component string, is scenario.Health) { e.turn(node, component, is) }
func (e Endpoints) Close() error                                    { return e.close() }

// Reporters are those of a story whose nodes run these components.
type Reporters struct{ *fleetReporters }

func NewReporters(dir string, e Endpoints, components map[string]scenario.Component) Reporters {
	return Reporters{newReporters(dir, nodestatus.Connection{}, e.endpoints, components)}
}

func (r Reporters) Install(node string, components ...string) error {
	return r.install(node, components)
}
func (r Reporters) Run(ctx context.Context, node string, run bool) error {
	return r.run(ctx, node, run)
}
func (r Reporters) Fall(node string)                            { r.fall(node) }
func (r Reporters) Wake(ctx context.Context, node string) error { return r.wake(ctx, node) }
func (r Reporters) Stop()                                       { r.stop() }
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

// Programmers are the components of a story that set conditions of pods.
type Programmers struct{ *programmers }

// Said is a condition that a component has set.
type Said struct {
	Component string
	Pod       string
	Condition corev1.PodCondition
}

// NewProgrammers tells what they say on a channel.
func NewProgrammers(components map[string]scenario.Component, said chan<- Said) Programmers {
	p := newProgrammers(components)
	p.write = func(_ context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error {
		said <- Said{component, pod.Name, condition}
		return nil
	}
	return Programmers{p}
}

func (p Programmers) Plays(component string) bool              { return p.plays(component) }
func (p Programmers) Saw(ctx context.Context, pod *corev1.Pod) { p.saw(ctx, pod) }
func (p Programmers) Turn(ctx context.Context, node, component string, is scenario.Health) {
	p.turn(ctx, node, component, is)
}
func (p Programmers) Stop() { p.stop() }

// LastOf are the components that metrics of an agent name as the last ones.
func LastOf(metrics prometheus.Gatherer) ([]string, error) { return lastOf(metrics) }

// SandboxGone and SandboxThere are the status of a pod that loses its sandbox, and gets another one.
func SandboxGone() map[string]any { return sandboxGone() }
func SandboxThere(pod *corev1.Pod, n int) map[string]any {
	return sandboxThere(pod, address(n))
}

// InvariantFails says whether an invariant that was looked at so often, and broken so often, fails.
func InvariantFails(looks int, broken ...string) error {
	return invariantProof("it", broken, looks).err
}
