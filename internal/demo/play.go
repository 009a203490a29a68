package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/scenario"
)

// proof is an expectation and its result.
type proof struct {
	text string
	took time.Duration
	err  error
}

// pollInterval is the time between two evaluations of an expectation.
const pollInterval = 200 * time.Millisecond

// play plays the scenario to its end, or until an expectation fails.
func (s *session) play(ctx context.Context) error {
	began, step := time.Now(), -1
	for _, moment := range s.script.Timeline() {
		if moment.Step != step {
			step, began = moment.Step, time.Now()
			s.output.step(&s.script.Steps[step])
		}
		if err := sleep(ctx, time.Until(began.Add(moment.After))); err != nil {
			return err
		}
		if err := s.do(ctx, &s.script.Steps[step], moment); err != nil {
			return err
		}
	}
	return nil
}

// do executes a moment of a step.
func (s *session) do(ctx context.Context, step *scenario.Step, moment scenario.Moment) error {
	switch {
	case step.Apply != nil:
		return s.apply(ctx, step.Apply)
	case step.Delete != nil:
		return s.deleteRule(ctx, step.Delete.Rule)
	case step.Join != nil:
		return s.join(ctx, moment.Node, step.Join)
	case step.Deploy != nil:
		return s.deploy(ctx, step.Deploy)
	case step.DaemonSet != nil:
		return s.daemonSet(ctx, step.DaemonSet)
	case step.Component != nil:
		s.setHealth(ctx, moment.Node, step.Component)
	case step.Reporters != nil:
		return s.reporters.run(ctx, moment.Node, step.Reporters.Run)
	case step.Reboot != nil:
		return s.reboot(ctx, moment.Node, moment.Away)
	case step.NewSandbox != nil:
		return s.newSandbox(ctx, step.NewSandbox.Deploy, moment.Node, moment.Away)
	case step.Expect != nil:
		return s.expect(ctx, step.Expect)
	}
	return nil
}

// errUnmet is returned if an expectation failed; the proofs have the details.
var errUnmet = errors.New("the scenario failed")

// expect waits until an expectation is met, and stays met for its time.
func (s *session) expect(ctx context.Context, e *scenario.Expect) error {
	began := time.Now()
	unmet := s.await(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.prove(proof{text: e.Text(), took: time.Since(began), err: unmet})
}

// prove records a proof. It returns errUnmet if the proof failed.
func (s *session) prove(p proof) error {
	s.proofs = append(s.proofs, p)
	s.output.proof(p)
	if p.err != nil {
		return errUnmet
	}
	return nil
}

// await returns nil when the expectation is met and stays met, otherwise the differences.
func (s *session) await(ctx context.Context, e *scenario.Expect) error {
	var unmet error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, e.Timeout(), true, func(context.Context) (bool, error) {
		unmet = e.Unmet(s.world(ctx))
		return unmet == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %v: %w", e.Timeout(), unmet)
	}
	for began := time.Now(); time.Since(began) < e.StableFor(); {
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
		if err := e.Unmet(s.world(ctx)); err != nil {
			return fmt.Errorf("not stable: %w", err)
		}
	}
	return nil
}

// world returns the current state of the cluster.
func (s *session) world(ctx context.Context) *scenario.World {
	world := &scenario.World{
		Pods:    s.monitor.podStates(),
		Rules:   map[string]scenario.RuleState{},
		Why:     func(node, deploy string) (string, error) { return s.why(ctx, node, deploy) },
		Mutated: func(kind string, labels map[string]string) (bool, error) { return s.mutated(ctx, kind, labels) },
		Last:    s.lastComponents,
	}
	for _, name := range s.joined {
		// Not from a snapshot, which is computed at the node's last change: the result also depends on time and on the
		// status of rules.
		node, _ := s.fleet.Explanation(ctx, name)
		world.Nodes = append(world.Nodes, scenario.NodeState{
			Name:     name,
			Held:     node.Settled && node.State == noderule.Held,
			Released: node.Settled && node.State == noderule.Released,
		})
	}
	for _, rule := range s.fleet.Snapshot().Rules {
		world.Rules[rule.Name] = scenario.RuleState{Standing: rule.Standing, Message: rule.Message}
	}
	if len(s.script.podRules) > 0 {
		rules, _ := s.source.PodRules(ctx) // after an error, the next poll lists them again
		for _, rule := range view.NewPodBook(rules).Rules() {
			world.Rules[rule.Name] = scenario.RuleState{Standing: rule.Standing, Message: rule.Message}
		}
	}
	return world
}

// why returns, on one line, the output of kubectl readiness why for a node or, if deploy is not empty, for the first pod of
// that Deployment on the node.
func (s *session) why(ctx context.Context, node, deploy string) (string, error) {
	var lines print.Lines
	if deploy == "" {
		explanation, err := s.source.Explanation(ctx, node)
		if err != nil {
			return "", err
		}
		lines = print.Explanation(explanation, time.Now())
	} else {
		pods, err := s.podsOf(ctx, deploy, node)
		if err != nil {
			return "", err
		}
		explanation, err := s.source.PodExplanation(ctx, Namespace, pods[0].Name)
		if err != nil {
			return "", err
		}
		lines = print.PodExplanation(explanation, time.Now())
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " "), nil
}

// sleep waits for d or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(0, d)):
		return nil
	}
}
