package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/scenario"
)

// player plays a scenario: it executes the steps and waits for what they expect.
type player struct {
	*cluster
	script    *script
	source    *live.Source
	fleet     *live.Fleet
	monitor   *monitor
	endpoints *endpoints
	reporters *nodeReporters
	manager   *localManager
	output    *output

	agents        *nodeAgents // nil if the scenario has no rules for pods
	podComponents *podComponents

	joined    []string // names in the scenario
	addresses int      // of pods, given so far
	proofs    []proof
}

// proof is an expectation and what became of it.
type proof struct {
	text string
	took time.Duration
	err  error
}

// pollInterval is the time between two evaluations of an expectation.
const pollInterval = 200 * time.Millisecond

// play plays the scenario to its end, or until an expectation fails.
func (d *player) play(ctx context.Context) error {
	began, step := time.Now(), -1
	for _, moment := range d.script.Timeline() {
		if moment.Step != step {
			step, began = moment.Step, time.Now()
			d.output.step(&d.script.Steps[step])
		}
		if err := sleep(ctx, time.Until(began.Add(moment.After))); err != nil {
			return err
		}
		if err := d.do(ctx, moment.Action); err != nil {
			return err
		}
	}
	return nil
}

// do executes one action.
func (d *player) do(ctx context.Context, action scenario.Action) error {
	switch {
	case action.Apply != nil:
		return d.apply(ctx, action.Apply)
	case action.Delete != nil:
		return d.deleteRule(ctx, action.Delete.Rule)
	case action.Join != nil:
		return d.join(ctx, action.Join)
	case action.Deploy != nil:
		return d.deploy(ctx, action.Deploy)
	case action.DaemonSet != nil:
		return d.daemonSet(ctx, action.DaemonSet)
	case action.Health != nil:
		d.setHealth(ctx, action.Health)
	case action.Reporter != nil:
		return d.reporters.run(ctx, action.Reporter.Node, action.Reporter.Run)
	case action.Boot != nil:
		return d.boot(ctx, action.Boot)
	case action.Sandbox != nil:
		return d.sandbox(ctx, action.Sandbox)
	case action.Expect != nil:
		return d.expect(ctx, action.Expect)
	}
	return nil
}

// errUnmet is returned if an expectation failed; the proofs have the details.
var errUnmet = errors.New("the scenario failed")

// expect waits until what is expected has come, and has stayed as long as it must.
func (d *player) expect(ctx context.Context, e *scenario.Expect) error {
	began := time.Now()
	unmet := d.await(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unmet == nil && e.StableFor() > 0 {
		unmet = d.stays(ctx, e)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.prove(proof{text: e.Text(), took: time.Since(began), err: unmet})
	if unmet != nil {
		return errUnmet
	}
	return nil
}

func (d *player) prove(p proof) {
	d.proofs = append(d.proofs, p)
	d.output.proof(p)
}

// await returns nil when everything is as expected; after the patience, what is not.
func (d *player) await(ctx context.Context, e *scenario.Expect) error {
	var unmet error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, e.Timeout(), true, func(context.Context) (bool, error) {
		unmet = errors.Join(d.manager.exited(), d.agents.exited(), e.Unmet(d.world(ctx)))
		return unmet == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %v: %w", e.Timeout(), unmet)
	}
	return nil
}

// stays looks again and again, as long as it must stay so.
func (d *player) stays(ctx context.Context, e *scenario.Expect) error {
	for began := time.Now(); time.Since(began) < e.StableFor(); {
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
		if err := e.Unmet(d.world(ctx)); err != nil {
			return fmt.Errorf("it did not stay so: %w", err)
		}
	}
	return nil
}

// world is the cluster as it is now.
func (d *player) world(ctx context.Context) scenario.World {
	world := scenario.World{Rules: map[string]scenario.RuleState{}, Pods: d.monitor.podStates()}
	world.Running, world.Waiting, _ = d.monitor.count()
	now := time.Now()
	for _, name := range d.joined {
		// Not a line of a snapshot, which is as old as the node's last change: time and the status
		// of rules change nodes too.
		node, _ := d.fleet.Story(name, now)
		world.Nodes = append(world.Nodes, scenario.NodeState{
			Name:     name,
			Held:     node.Settled && node.State == noderule.Held,
			Released: node.Settled && node.State == noderule.Released,
		})
	}
	for _, rule := range d.fleet.Snapshot().Rules {
		world.Rules[rule.Name] = scenario.RuleState{Standing: rule.Standing, Message: rule.Message}
	}
	maps.Copy(world.Rules, d.podRules(ctx))
	world.Why = func(node string) (string, error) { return d.why(ctx, node) }
	world.WhyPod = func(deploy, node string) (string, error) { return d.whyPod(ctx, deploy, node) }
	world.TaintedAtCreation = func(labels map[string]string) (bool, error) { return d.taintedAtCreation(ctx, labels) }
	world.GatedAtCreation = func(labels map[string]string) (bool, error) { return d.gatedAtCreation(ctx, labels) }
	world.Last = func(node string) ([]string, error) { return d.agents.last(node) }
	world.Tolerated = func(labels map[string]string) (bool, error) { return d.tolerated(ctx, labels) }
	return world
}

// why is the explanation of a node, as one text.
func (d *player) why(ctx context.Context, node string) (string, error) {
	story, err := d.source.Story(ctx, node, time.Now)
	if err != nil {
		return "", err
	}
	said := []string{story.Headline + "."}
	for _, chapter := range story.Chapters {
		said = append(said, "Rule "+chapter.Rule+" "+chapter.Text+".")
	}
	for _, event := range story.Events {
		said = append(said, event.Note+".")
	}
	return strings.Join(append(said, story.Next...), " "), nil
}

// taintedAtCreation asks the API server by a dry run whether a node with these labels would be created with the taint of a rule.
func (d *player) taintedAtCreation(ctx context.Context, labels map[string]string) (bool, error) {
	node := d.newNode("readygate-dry-run", labels, nil)
	if err := d.client.Create(ctx, node, client.DryRunAll); err != nil {
		return false, err
	}
	return len(ofRules(node)) > 0, nil
}

// sleep lets time pass.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
