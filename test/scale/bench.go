package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

// bench measures one subject in one world.
type bench struct {
	subject subject
	world   *world
	process *process // nil: nobody
	rules   []*v1alpha1.NodeReadinessRule
	names   []string // of all nodes
	// bystanders is the number of rules that select no node.
	bystanders int
	ruled      bool // the rules were created
	waits      bool // phases wait for a calm machine
	heapEmpty  int64
}

func newBench(ctx context.Context, s subject, size size, bystanders int) (*bench, error) {
	b := &bench{subject: s, bystanders: bystanders}
	var taints []string
	for i := range size.Rules {
		rule := newRule(fmt.Sprintf("scale-%d", i), pool, testenv.Condition, size.Mode)
		b.rules = append(b.rules, rule)
		taints = append(taints, rule.Spec.Taint.Key)
	}
	for i := range bystanders {
		name := fmt.Sprintf("bystander-%d", i)
		b.rules = append(b.rules, newRule(name, name, "example.com/"+name, size.Mode))
	}
	for i := range size.Nodes {
		b.names = append(b.names, nodeName(i))
	}
	var err error
	b.world, err = newWorld(ctx, s, size, taints)
	return b, err
}

// newRule is a rule that holds the nodes of a pool until the condition is True.
func newRule(name, pool, condition, mode string) *v1alpha1.NodeReadinessRule {
	return testenv.Rule(name, func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(pool)}
		r.Spec.Conditions[0].Type = condition
		r.Spec.EnforcementMode = v1alpha1.EnforcementMode(mode)
	})
}

func (b *bench) title() string {
	return fmt.Sprintf("%s, nodes: %d, rules: %d", b.subject.name, b.world.size.Nodes, len(b.rules))
}

func (b *bench) close() error {
	b.stop()
	return b.world.close()
}

// start starts the subject; nobody is no process.
func (b *bench) start() (err error) {
	if b.subject.name == report.Nobody {
		return nil
	}
	b.process, err = b.world.launch(b.subject, b.ruled)
	return err
}

// stop ends the subject's process, if there is one.
func (b *bench) stop() {
	b.process.end()
	b.process = nil
}

// restart starts the subject anew: it remembers nothing of what it has told.
func (b *bench) restart(ctx context.Context) error {
	b.stop()
	return errors.Join(b.start(), b.quiet(ctx))
}

// hasRules says whether the subject learns of rules from the API server.
func (b *bench) hasRules() bool {
	return b.subject.name != report.Nobody && b.subject.name != report.Floor
}

// createRules tells the subject of its rules. It runs by then.
func (b *bench) createRules(ctx context.Context) error {
	b.ruled = true
	if b.subject.name == report.Floor {
		return b.process.signal(syscall.SIGUSR1)
	}
	if !b.hasRules() {
		return nil
	}
	for _, rule := range b.rules {
		if err := b.world.cluster.Client.Create(ctx, rule.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// deleteRules takes the rules away.
func (b *bench) deleteRules(ctx context.Context) error {
	if b.subject.name == report.Floor {
		return b.process.signal(syscall.SIGUSR2)
	}
	if !b.hasRules() {
		return nil
	}
	for _, rule := range b.rules {
		if err := b.world.cluster.Client.Delete(ctx, rule.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// awaitRules waits until every rule is as it is to be.
func (b *bench) awaitRules(ctx context.Context, is func(*v1alpha1.NodeReadinessRule) bool) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.NodeReadinessRuleList
		if err := b.world.cluster.Client.List(ctx, &list); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(r v1alpha1.NodeReadinessRule) bool { return !is(&r) }), b.process.alive()
	})
}

func covered(r *v1alpha1.NodeReadinessRule) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionBirthsCovered)
}

// awaitCovered waits until nodes are born held, where the subject sees to that. A rule says so
// some seconds after it came to be, with one more write of its status.
func (b *bench) awaitCovered(ctx context.Context) error {
	if b.subject.name != report.Ours {
		return nil
	}
	if err := b.awaitRules(ctx, covered); err != nil {
		return fmt.Errorf("waiting until births are covered: %w", err)
	}
	return nil
}

func gone(*v1alpha1.NodeReadinessRule) bool { return false }

// result is a result of this bench with what its process took of the machine.
func (b *bench) result(ctx context.Context, scenario string, phases []report.Phase, problem error) report.Result {
	r := report.Result{
		Scenario: scenario, Subject: b.subject.name, Nodes: b.world.size.Nodes, Rules: len(b.rules), Mode: b.world.size.Mode, Writers: b.world.size.Writers,
		Phases: phases, HeapEmpty: b.heapEmpty,
	}
	if problem != nil {
		r.Problem = problem.Error()
	}
	if b.process == nil || b.process.alive() != nil {
		return r
	}
	usage, err := b.process.usage()
	if err != nil {
		r.Problem = errors.Join(problem, err).Error()
		return r
	}
	r.Peak, r.Settled = usage.Peak, usage.RSS
	if b.hasRules() {
		r.Heap, r.StatusBytes = b.process.heap(ctx), b.largestRule(ctx)
	}
	return r
}

// largestRule is the size of the largest rule object, as JSON.
func (b *bench) largestRule(ctx context.Context) int64 {
	var largest int64
	for _, rule := range b.rules {
		var obj v1alpha1.NodeReadinessRule
		if err := b.world.cluster.Client.Get(ctx, types.NamespacedName{Name: rule.Name}, &obj); client.IgnoreNotFound(err) != nil {
			return 0
		}
		data, _ := json.Marshal(obj)
		largest = max(largest, int64(len(data)))
	}
	return largest
}
