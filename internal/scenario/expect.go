package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Expect is what must be so. Everything that is named must be so at the same time.
type Expect struct {
	// nodes are names or patterns that held and released speak of. Absent: all nodes.
	Nodes []string `json:"nodes,omitempty"`
	// held and released are how many of them are; a number, or all.
	Held     *Amount `json:"held,omitempty"`
	Released *Amount `json:"released,omitempty"`

	// running and waiting are how many of the story's pods run, or are bound to no node.
	Running *int `json:"running,omitempty"`
	Waiting *int `json:"waiting,omitempty"`

	// rule is the name of a rule, standing what it is, e.g. Enforced or Conflict, and says a
	// part of its message.
	Rule     string `json:"rule,omitempty"`
	Standing string `json:"standing,omitempty"`
	Says     string `json:"says,omitempty"`

	// bornHeld are labels: a node that joins with them is born with the taint of a rule.
	BornHeld map[string]string `json:"bornHeld,omitempty"`

	// tolerated are labels: a DaemonSet that is created or changed with them gets a toleration of
	// the taint of a rule.
	Tolerated map[string]string `json:"tolerated,omitempty"`

	// why is what the story of a node says.
	Why *Why `json:"why,omitempty"`

	// within is how long it may take. Absent: 1m.
	Within *Duration `json:"within,omitempty"`
	// for is how long it must then stay so. Absent: it is enough to be so once.
	For *Duration `json:"for,omitempty"`
}

// Why asks for the story of a node, as kubectl readiness why tells it.
type Why struct {
	Node string `json:"node"`
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

// World is what an expectation is about, as it is at one moment.
type World struct {
	// Nodes are those of the story.
	Nodes []NodeState
	// Running and Waiting count the pods of the story.
	Running, Waiting int
	Rules            map[string]RuleState
	// Why is the story of a node, BornHeld whether a node with these labels would be born held,
	// and Tolerated whether a DaemonSet with these would get a toleration. They are asked only if
	// the expectation is about them.
	Why       func(node string) (string, error)
	BornHeld  func(labels map[string]string) (bool, error)
	Tolerated func(labels map[string]string) (bool, error)
}

// NodeState is one node. One that is neither is about to become one of both.
type NodeState struct {
	Name           string
	Held, Released bool
}

// RuleState is one rule.
type RuleState struct{ Standing, Message string }

const defaultWithin = time.Minute

// Patience is how long it may take to come.
func (e *Expect) Patience() time.Duration { return e.Within.or(defaultWithin) }

// Lasting is how long it must stay.
func (e *Expect) Lasting() time.Duration { return e.For.or(0) }

// Unmet says what is not as expected; nil if everything is.
func (e *Expect) Unmet(world World) error {
	return errors.Join(e.unmetNodes(world), e.unmetPods(world), e.unmetRule(world), e.unmetStory(world))
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

func (e *Expect) unmetStory(world World) error {
	if e.Why != nil {
		story, err := world.Why(e.Why.Node)
		if err != nil {
			return fmt.Errorf("the story of %s: %w", e.Why.Node, err)
		}
		if !strings.Contains(story, e.Why.Contains) {
			return fmt.Errorf("the story of %s is %q, expected %q in it", e.Why.Node, story, e.Why.Contains)
		}
	}
	if e.BornHeld != nil {
		born, err := world.BornHeld(e.BornHeld)
		if err != nil {
			return fmt.Errorf("asking the API server how a node is born: %w", err)
		}
		if !born {
			return errors.New("a node would be born without the taint")
		}
	}
	if e.Tolerated != nil {
		gets, err := world.Tolerated(e.Tolerated)
		if err != nil {
			return fmt.Errorf("asking the API server what a DaemonSet tolerates: %w", err)
		}
		if !gets {
			return errors.New("a DaemonSet would get no toleration")
		}
	}
	return nil
}
