package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expect is what must be so. Everything that is named must be so at the same time.
type Expect struct {
	// nodes are names or patterns that held and released speak of, and those on which pods are
	// counted. Absent: all nodes.
	Nodes []string `json:"nodes,omitempty"`
	// held and released are how many of them are; a number, or all.
	Held     *Amount `json:"held,omitempty"`
	Released *Amount `json:"released,omitempty"`

	// running and waiting are how many of the scenario's pods run, or are bound to no node.
	Running *int `json:"running,omitempty"`
	Waiting *int `json:"waiting,omitempty"`

	// pods is what the scenario's pods say of their gates.
	Pods *Pods `json:"pods,omitempty"`

	// rule is the name of a rule, standing what it is, e.g. Enforced or Conflict, and says a
	// part of its message.
	Rule     string `json:"rule,omitempty"`
	Standing string `json:"standing,omitempty"`
	Says     string `json:"says,omitempty"`

	// taintedAtCreation are labels: a node that joins with them is created with the taint of a rule.
	TaintedAtCreation map[string]string `json:"taintedAtCreation,omitempty"`

	// gatedAtCreation are labels: a pod that is created with them gets a readiness gate.
	GatedAtCreation map[string]string `json:"gatedAtCreation,omitempty"`

	// tolerated are labels: a DaemonSet that is created or changed with them gets a toleration of
	// the taint of a rule.
	Tolerated map[string]string `json:"tolerated,omitempty"`

	// last is the component that was the last one to become ready.
	Last *Last `json:"last,omitempty"`

	// why is a part of the explanation of a node or of a pod.
	Why *Why `json:"why,omitempty"`

	// within is how long it may take. Absent: 1m.
	Within *Duration `json:"within,omitempty"`
	// for is how long it must then stay so. Absent: it is enough to be so once.
	For *Duration `json:"for,omitempty"`
}

// Pods counts pods of the scenario.
type Pods struct {
	// gated is how many have a readiness gate, waiting how many have a closed one, and ready how
	// many are Ready.
	Gated   *int `json:"gated,omitempty"`
	Waiting *int `json:"waiting,omitempty"`
	Ready   *int `json:"ready,omitempty"`
	// reasons are how many gates are as they are for which reason, e.g. RuleDeleted: 4.
	Reasons map[string]int `json:"reasons,omitempty"`
}

// Last expects that the agent of a node recorded this component as the last one to become ready for its pods.
type Last struct {
	Node string `json:"node"`
	// component is its name in the rule.
	Component string `json:"component"`
}

// Why expects a text in the explanation of a node, as kubectl readiness why prints it.
type Why struct {
	Node string `json:"node"`
	// pod is the name of a Deployment: then it is the explanation of its first pod on the node.
	Pod string `json:"pod,omitempty"`
	// contains is a part of it: of its headline, of what a rule does, of an event, or of the
	// advice.
	Contains string `json:"contains"`
}

// Amount is a number of nodes, or all of them.
type Amount struct {
	All bool
	N   int
}

// UnmarshalJSON reads a number, or all.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if string(data) == `"all"` {
		a.All = true
		return nil
	}
	if err := json.Unmarshal(data, &a.N); err != nil || a.N < 0 {
		return fmt.Errorf("an amount is %s, must be a number or all", data)
	}
	return nil
}

func (a Amount) String() string {
	if a.All {
		return "all"
	}
	return strconv.Itoa(a.N)
}

const defaultWithin = time.Minute

// Timeout is how long it may take.
func (e *Expect) Timeout() time.Duration { return e.Within.or(defaultWithin) }

// StableFor is how long it must stay.
func (e *Expect) StableFor() time.Duration { return e.For.or(0) }

// Unmet says what is not as expected; nil if everything is.
func (e *Expect) Unmet(world World) error {
	return errors.Join(e.unmetNodes(world), e.unmetPods(world), e.unmetGates(world), e.unmetRule(world), e.unmetQueries(world))
}

func (e *Expect) unmetNodes(world World) error {
	var selected, held, released int
	for _, node := range world.Nodes {
		if len(e.Nodes) > 0 && !matchesAny(e.Nodes, node.Name) {
			continue
		}
		selected++
		if node.Held {
			held++
		}
		if node.Released {
			released++
		}
	}
	var errs []error
	differs := func(word string, want *Amount, got int) {
		if want == nil || want.All && got == selected && got > 0 || !want.All && got == want.N {
			return
		}
		errs = append(errs, fmt.Errorf("%d of %d nodes are %s, expected %v", got, selected, word, want))
	}
	differs("held", e.Held, held)
	differs("released", e.Released, released)
	return errors.Join(errs...)
}

func (e *Expect) unmetPods(world World) error {
	var errs []error
	if e.Running != nil && world.Running != *e.Running {
		errs = append(errs, fmt.Errorf("%d pods run, expected %d", world.Running, *e.Running))
	}
	if e.Waiting != nil && world.Waiting != *e.Waiting {
		errs = append(errs, fmt.Errorf("%d pods wait, expected %d", world.Waiting, *e.Waiting))
	}
	return errors.Join(errs...)
}

func (e *Expect) unmetGates(world World) error {
	if e.Pods == nil {
		return nil
	}
	var gated, waiting, ready int
	reasons := map[string]int{}
	for _, pod := range world.Pods {
		if len(e.Nodes) > 0 && !matchesAny(e.Nodes, pod.Node) {
			continue
		}
		gated, waiting, ready = gated+one(pod.Gated), waiting+one(pod.Waiting), ready+one(pod.Ready)
		for _, reason := range pod.Reasons {
			reasons[reason]++
		}
	}
	var errs []error
	differs := func(words string, want *int, got int) {
		if want != nil && *want != got {
			errs = append(errs, fmt.Errorf("%s %s, expected %d", counted(got, "pod"), words, *want))
		}
	}
	differs("with a gate", e.Pods.Gated, gated)
	differs("with a closed gate", e.Pods.Waiting, waiting)
	differs("ready", e.Pods.Ready, ready)
	for _, reason := range slices.Sorted(maps.Keys(e.Pods.Reasons)) {
		if want, got := e.Pods.Reasons[reason], reasons[reason]; want != got {
			errs = append(errs, fmt.Errorf("%s because of %s, expected %d", counted(got, "gate"), reason, want))
		}
	}
	return errors.Join(errs...)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (e *Expect) unmetRule(world World) error {
	if e.Rule == "" {
		return nil
	}
	rule, there := world.Rules[e.Rule]
	switch {
	case !there && e.Standing == Gone:
		return nil
	case !there:
		return fmt.Errorf("there is no rule %s", e.Rule)
	case e.Standing != "" && rule.Standing != e.Standing:
		return fmt.Errorf("rule %s is %s (%s), expected %s", e.Rule, rule.Standing, rule.Message, e.Standing)
	case !strings.Contains(rule.Message, e.Says):
		return fmt.Errorf("rule %s says %q, expected %q in it", e.Rule, rule.Message, e.Says)
	}
	return nil
}

// Gone is the standing of a rule that is not there.
const Gone = "Gone"

// unmetQueries evaluates the expectations that need a query, until one fails.
func (e *Expect) unmetQueries(world World) error {
	for _, unmet := range []func(World) error{e.unmetWhy, e.unmetAsked, e.unmetLast} {
		if err := unmet(world); err != nil {
			return err
		}
	}
	return nil
}

func (e *Expect) unmetWhy(world World) error {
	if e.Why == nil {
		return nil
	}
	tell := func() (string, error) { return world.Why(e.Why.Node) }
	if e.Why.Pod != "" {
		tell = func() (string, error) { return world.WhyPod(e.Why.Pod, e.Why.Node) }
	}
	story, err := tell()
	if err != nil {
		return fmt.Errorf("the explanation of %s: %w", e.Why.subject(), err)
	}
	if !strings.Contains(story, e.Why.Contains) {
		return fmt.Errorf("the explanation of %s is %q, expected %q in it", e.Why.subject(), story, e.Why.Contains)
	}
	return nil
}

// unmetAsked asks the API server what would become of objects with certain labels.
func (e *Expect) unmetAsked(world World) error {
	for _, question := range []struct {
		labels   map[string]string
		ask      func(map[string]string) (bool, error)
		what, no string
	}{
		{e.TaintedAtCreation, world.TaintedAtCreation, "for the taints of a new node", "a node would be created without the taint"},
		{e.GatedAtCreation, world.GatedAtCreation, "for the gates of a new pod", "a pod would be created without a gate"},
		{e.Tolerated, world.Tolerated, "for the tolerations of a DaemonSet", "a DaemonSet would get no toleration"},
	} {
		if question.labels == nil {
			continue
		}
		yes, err := question.ask(question.labels)
		if err != nil {
			return fmt.Errorf("asking the API server %s: %w", question.what, err)
		}
		if !yes {
			return errors.New(question.no)
		}
	}
	return nil
}

func (e *Expect) unmetLast(world World) error {
	if e.Last == nil {
		return nil
	}
	last, err := world.Last(e.Last.Node)
	if err != nil {
		return fmt.Errorf("asking the agent of %s which component was the last one: %w", e.Last.Node, err)
	}
	if !slices.Equal(last, []string{e.Last.Component}) {
		return fmt.Errorf("on %s the last components to become ready were %q, expected %s alone", e.Last.Node, last, e.Last.Component)
	}
	return nil
}
