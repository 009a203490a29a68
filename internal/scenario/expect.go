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

	"github.com/readygate/readygate/internal/text"
)

// Expect is what must be so. Everything that is named must be so at the same time.
type Expect struct {
	// nodes are names or patterns that held and released count, and those on which pods are
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

// Gone is the standing of a rule that is not there.
const Gone = "Gone"

// check is one part of an expectation.
type check struct {
	text  string             // what is expected
	unmet func(*World) error // how the world differs from it; nil if it does not
}

// Text describes what is expected.
func (e *Expect) Text() string {
	var parts []string
	for _, c := range e.checks() {
		parts = append(parts, c.text)
	}
	text := strings.Join(parts, ", ")
	if stable := e.StableFor(); stable > 0 {
		text += fmt.Sprintf(", and so it stays for %v", stable)
	}
	return text
}

// Unmet returns how the world differs from what is expected; nil if it does not.
func (e *Expect) Unmet(world *World) error {
	var errs []error
	for _, c := range e.checks() {
		errs = append(errs, c.unmet(world))
	}
	return errors.Join(errs...)
}

// checks are the parts of the expectation, in the order in which the text names them.
func (e *Expect) checks() []check {
	all := append(e.nodeChecks(), e.podChecks()...)
	if e.Rule != "" {
		all = append(all, check{e.ruleText(), e.unmetRule})
	}
	for _, query := range []struct {
		kind     string
		labels   map[string]string
		text, no string
	}{
		{"Node", e.TaintedAtCreation, "a new node is tainted at creation", "a node would be created without the taint"},
		{"Pod", e.GatedAtCreation, "a new pod gets a gate at creation", "a pod would be created without a gate"},
		{"DaemonSet", e.Tolerated, "a DaemonSet gets a toleration", "a DaemonSet would get no toleration"},
	} {
		if query.labels == nil {
			continue
		}
		all = append(all, check{query.text, func(w *World) error {
			yes, err := w.Mutated(query.kind, query.labels)
			if err != nil {
				return fmt.Errorf("asking the API server whether %s: %w", query.text, err)
			}
			if !yes {
				return errors.New(query.no)
			}
			return nil
		}})
	}
	if e.Last != nil {
		all = append(all, check{fmt.Sprintf("on %s %s was the last component to become ready", e.Last.Node, e.Last.Component), e.Last.unmet})
	}
	if e.Why != nil {
		all = append(all, check{fmt.Sprintf("the explanation of %s contains %q", e.Why.subject(), e.Why.Contains), e.Why.unmet})
	}
	return all
}

func (e *Expect) nodeChecks() []check {
	var all []check
	expect := func(want *Amount, word string, is func(NodeState) bool) {
		if want == nil {
			return
		}
		all = append(all, check{e.amount(want) + " " + word, func(w *World) error {
			var got, of int
			for _, node := range w.Nodes {
				if e.isAbout(node.Name) {
					of++
					got += one(is(node))
				}
			}
			if want.All && got == of && of > 0 || !want.All && got == want.N {
				return nil
			}
			return fmt.Errorf("%d of %d nodes are %s, expected %v", got, of, word, want)
		}})
	}
	expect(e.Held, "held", func(n NodeState) bool { return n.Held })
	expect(e.Released, "released", func(n NodeState) bool { return n.Released })
	return all
}

func (e *Expect) podChecks() []check {
	var all []check
	expect := func(want int, noun, words string, count func(PodState) int) {
		all = append(all, check{text.Count(want, noun) + " " + words, func(w *World) error {
			got := 0
			for _, pod := range w.Pods {
				got += count(pod)
			}
			if got == want {
				return nil
			}
			return fmt.Errorf("%s %s, expected %d", text.Count(got, noun), words, want)
		}})
	}
	expectPods := func(want *int, words string, is func(PodState) bool) {
		if want != nil {
			expect(*want, "pod", words, func(p PodState) int { return one(is(p)) })
		}
	}
	expectPods(e.Waiting, "waiting", func(p PodState) bool { return p.Node == "" })
	expectPods(e.Running, "running", func(p PodState) bool { return p.Running })
	if e.Pods == nil {
		return all
	}
	before := len(all)
	expectPods(e.Pods.Gated, "with a gate", func(p PodState) bool { return p.Gated && e.isAbout(p.Node) })
	expectPods(e.Pods.Waiting, "with a closed gate", func(p PodState) bool { return p.Waiting && e.isAbout(p.Node) })
	expectPods(e.Pods.Ready, "ready", func(p PodState) bool { return p.Ready && e.isAbout(p.Node) })
	for _, reason := range slices.Sorted(maps.Keys(e.Pods.Reasons)) {
		expect(e.Pods.Reasons[reason], "gate", "because of "+reason, func(p PodState) (gates int) {
			for _, r := range p.Reasons {
				gates += one(r == reason && e.isAbout(p.Node))
			}
			return gates
		})
	}
	if len(all) > before && len(e.Nodes) > 0 {
		all[len(all)-1].text += " on " + strings.Join(e.Nodes, ", ")
	}
	return all
}

// isAbout is whether the expectation counts a node, and pods there.
func (e *Expect) isAbout(node string) bool { return len(e.Nodes) == 0 || matchesAny(e.Nodes, node) }

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// amount reads as in "3 nodes" or "all of worker-*".
func (e *Expect) amount(a *Amount) string {
	switch {
	case len(e.Nodes) > 0:
		return a.String() + " of " + strings.Join(e.Nodes, ", ")
	case a.All:
		return "all nodes"
	}
	return text.Count(a.N, "node")
}

func (e *Expect) ruleText() string {
	text := "rule " + e.Rule
	if e.Standing != "" {
		text += " is " + e.Standing
	}
	if e.Says != "" {
		text += fmt.Sprintf(", it says %q", e.Says)
	}
	return text
}

func (e *Expect) unmetRule(world *World) error {
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

// subject reads as in "worker-1" or "a pod of shop on worker-1".
func (w *Why) subject() string {
	if w.Pod == "" {
		return w.Node
	}
	return "a pod of " + w.Pod + " on " + w.Node
}

func (w *Why) unmet(world *World) error {
	text, err := world.Why(w.Node, w.Pod)
	if err != nil {
		return fmt.Errorf("the explanation of %s: %w", w.subject(), err)
	}
	if !strings.Contains(text, w.Contains) {
		return fmt.Errorf("the explanation of %s is %q, expected %q in it", w.subject(), text, w.Contains)
	}
	return nil
}

func (l *Last) unmet(world *World) error {
	last, err := world.Last(l.Node)
	if err != nil {
		return fmt.Errorf("asking the agent of %s which component was the last one: %w", l.Node, err)
	}
	if !slices.Equal(last, []string{l.Component}) {
		return fmt.Errorf("on %s the last components to become ready were %q, expected %s alone", l.Node, last, l.Component)
	}
	return nil
}
