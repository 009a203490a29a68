package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/nodestatus"
	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/scenario"
	"github.com/readygate/readygate/internal/terminal"
	"github.com/readygate/readygate/internal/view"
)

// Confine changes a rule as for a cluster of others, or as for the demo's own.
func Confine(rule *v1alpha1.NodeReadinessRule, confined bool) {
	names{confined: confined}.confine(rule)
}

// NodeLabels are those of a node of the demo.
func NodeLabels(name string, labels map[string]string, confined bool) map[string]string {
	return names{confined: confined}.nodeLabels(name, labels)
}

// RulesOf are the rules that a scenario applies.
func RulesOf(root, name string) ([]*v1alpha1.NodeReadinessRule, error) {
	s, err := readScript(root, name)
	if err != nil {
		return nil, err
	}
	var rules []*v1alpha1.NodeReadinessRule
	for _, rule := range s.rules {
		rules = append(rules, rule)
	}
	return rules, nil
}

// Witness lets tests be the cluster that is watched.
type Witness struct{ *witness }

func NewWitness(now func() time.Time) Witness { return Witness{newWitness(now)} }

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
type Reporters struct{ *reporters }

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

// KWOKConfig is how KWOK plays nodes, and AwayAnnotation on those that it leaves alone.
var (
	KWOKConfig     = string(kwokConfig)
	AwayAnnotation = awayAnnotation
)

// InvariantFails says whether an invariant that was looked at so often, and broken so often, fails.
func InvariantFails(looks int, broken ...string) error {
	return invariantProof("it", broken, looks).err
}
