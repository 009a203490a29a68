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

// director plays a story: it does what the steps say, and looks whether what they expect comes.
type director struct {
	*stage
	script    *script
	source    *live.Source
	fleet     *live.Fleet
	witness   *witness
	endpoints *endpoints
	reporters *fleetReporters
	manager   *enforcer
	teller    *teller

	agents      *fleetAgents // nil if the story has no rules for pods
	programmers *programmers

	joined    []string // names in the story
	addresses int      // of pods, given so far
	proofs    []proof
}

// proof is an expectation and what became of it.
type proof struct {
	text string
	took time.Duration
	err  error
}

// look is the pause between two looks at something that is expected.
const look = 200 * time.Millisecond

// play plays the story to its end, or until something that was expected does not come.
func (d *director) play(ctx context.Context) error {
	began, step := time.Now(), -1
	for _, moment := range d.script.Timeline() {
		if moment.Step != step {
			step, began = moment.Step, time.Now()
			d.teller.step(&d.script.Steps[step])
		}
		if err := sleep(ctx, time.Until(began.Add(moment.After))); err != nil {
			return err
		}
		if err := d.act(ctx, moment.Act); err != nil {
			return err
		}
	}
	return nil
}

// act does what happens in a moment.
func (d *director) act(ctx context.Context, act scenario.Act) error {
	switch {
	case act.Apply != nil:
		return d.apply(ctx, act.Apply)
	case act.Delete != nil:
		return d.deleteRule(ctx, act.Delete.Rule)
	case act.Join != nil:
		return d.join(ctx, act.Join)
	case act.Deploy != nil:
		return d.deploy(ctx, act.Deploy)
	case act.DaemonSet != nil:
		return d.daemonSet(ctx, act.DaemonSet)
	case act.Turn != nil:
		d.turn(ctx, act.Turn)
	case act.Reporter != nil:
		return d.reporters.run(ctx, act.Reporter.Node, act.Reporter.Run)
	case act.Boot != nil:
		return d.boot(ctx, act.Boot)
	case act.Sandbox != nil:
		return d.sandbox(ctx, act.Sandbox)
	case act.Expect != nil:
		return d.expect(ctx, act.Expect)
	}
	return nil
}

// errUnmet says that the story did not go as expected. What, the proofs say.
var errUnmet = errors.New("the story did not go as expected")

// expect waits until what is expected has come, and has stayed as long as it must.
func (d *director) expect(ctx context.Context, e *scenario.Expect) error {
	began := time.Now()
	unmet := d.await(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unmet == nil && e.Lasting() > 0 {
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

func (d *director) prove(p proof) {
	d.proofs = append(d.proofs, p)
	d.teller.proof(p)
}

// await returns nil when everything is as expected; after the patience, what is not.
func (d *director) await(ctx context.Context, e *scenario.Expect) error {
	var unmet error
	err := wait.PollUntilContextTimeout(ctx, look, e.Patience(), true, func(context.Context) (bool, error) {
		unmet = errors.Join(d.manager.lives(), d.agents.lives(), e.Unmet(d.world(ctx)))
		return unmet == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %v: %w", e.Patience(), unmet)
	}
	return nil
}

// stays looks again and again, as long as it must stay so.
func (d *director) stays(ctx context.Context, e *scenario.Expect) error {
	for began := time.Now(); time.Since(began) < e.Lasting(); {
		if err := sleep(ctx, look); err != nil {
			return err
		}
		if err := e.Unmet(d.world(ctx)); err != nil {
			return fmt.Errorf("it did not stay so: %w", err)
		}
	}
	return nil
}

// world is the cluster as it is now.
func (d *director) world(ctx context.Context) scenario.World {
	world := scenario.World{Rules: map[string]scenario.RuleState{}, Pods: d.witness.podStates()}
	world.Running, world.Waiting, _ = d.witness.count()
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
	world.BornHeld = func(labels map[string]string) (bool, error) { return d.bornHeld(ctx, labels) }
	world.BornGated = func(labels map[string]string) (bool, error) { return d.bornGated(ctx, labels) }
	world.Last = func(node string) ([]string, error) { return d.agents.last(node) }
	world.Tolerated = func(labels map[string]string) (bool, error) { return d.tolerated(ctx, labels) }
	return world
}

// why is the story of a node, as one text in the names of the story.
func (d *director) why(ctx context.Context, node string) (string, error) {
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

// bornHeld asks the API server how a node would be born; none is.
func (d *director) bornHeld(ctx context.Context, labels map[string]string) (bool, error) {
	node := d.newNode("readygate-unborn", labels, nil)
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
