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

// Expect is an expected state. All fields that are set must hold at the same time.
type Expect struct {
	// nodes are names or patterns, e.g. worker-*: held, released and pods count only these nodes. Absent: all nodes.
	Nodes []string `json:"nodes,omitempty"`
	// held and released are numbers of nodes, or all. Absent: any number.
	Held     *Amount `json:"held,omitempty"`
	Released *Amount `json:"released,omitempty"`

	// running and waiting are the numbers of the scenario's pods that run, or that are not bound to a node.
	Running *int `json:"running,omitempty"`
	Waiting *int `json:"waiting,omitempty"`

	// pods counts the scenario's pods by the state of their gates.
	Pods *Pods `json:"pods,omitempty"`

	// rule is the name of a rule, standing its state, e.g. Enforced or Conflict, and says a
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

	// within is the timeout. Absent: 1m.
	Within *Duration `json:"within,omitempty"`
	// for is how long the state must then stay unchanged. Absent: the state must hold once.
	For *Duration `json:"for,omitempty"`
}

// Pods counts pods of the scenario.
type Pods struct {
	// gated is the number of pods with a readiness gate, waiting of those with a closed gate, and ready of
	// those that are Ready.
	Gated   *int `json:"gated,omitempty"`
	Waiting *int `json:"waiting,omitempty"`
	Ready   *int `json:"ready,omitempty"`
	// reasons are the numbers of gates by the reason of their condition, e.g. RuleDeleted: 4.
	Reasons map[string]int `json:"reasons,omitempty"`
}

// Last expects that the agent of a node recorded this component as the last one to become ready for its pods.
type Last struct {
	Node string `json:"node"`
	// component is the name of the component in the rule.
	Component string `json:"component"`
}

// Why expects a text in the explanation of a node, as kubectl readiness why prints it.
type Why struct {
	Node string `json:"node"`
	// pod is the name of a Deployment: the explanation is that of its first pod on the node. Absent: that of the node.
	Pod string `json:"pod,omitempty"`
	// contains is a part of the explanation: of its headline, a rule, an event, or the next step.
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

// Timeout returns the timeout of the expectation.
func (e *Expect) Timeout() time.Duration { return e.Within.or(defaultWithin) }

// StableFor returns how long the state must stay unchanged.
func (e *Expect) StableFor() time.Duration { return e.For.or(0) }

// Gone is the standing of a rule that does not exist.
const Gone = "Gone"

// check is one part of an expectation.
type check struct {
	text  string             // describes the expected state
	unmet func(*World) error // returns the difference; nil if there is none
}

// Text describes the expectation.
func (e *Expect) Text() string {
	var parts []string
	for _, c := range e.checks() {
		parts = append(parts, c.text)
	}
	text := strings.Join(parts, ", ")
	if stable := e.StableFor(); stable > 0 {
		text += fmt.Sprintf(", stable for %v", stable)
	}
	return text
}

// Unmet returns the differences between the world and the expectation; nil if there are none.
func (e *Expect) Unmet(world *World) error {
	var errs []error
	for _, c := range e.checks() {
		errs = append(errs, c.unmet(world))
	}
	return errors.Join(errs...)
}

// checks returns the parts of the expectation, in the order of the text.
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
				return fmt.Errorf("checking with a dry run whether %s: %w", query.text, err)
			}
			if !yes {
				return errors.New(query.no)
			}
			return nil
		}})
	}
	if e.Last != nil {
		all = append(all, check{fmt.Sprintf("on %s, %s was the last component to become ready", e.Last.Node, e.Last.Component), e.Last.unmet})
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
		expect(e.Pods.Reasons[reason], "gate", "with reason "+reason, func(p PodState) (gates int) {
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

// isAbout reports whether the expectation counts a node and its pods.
func (e *Expect) isAbout(node string) bool { return len(e.Nodes) == 0 || matchesAny(e.Nodes, node) }

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// amount returns e.g. "3 nodes" or "all of worker-*".
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
		text += fmt.Sprintf(", its message contains %q", e.Says)
	}
	return text
}

func (e *Expect) unmetRule(world *World) error {
	rule, there := world.Rules[e.Rule]
	switch {
	case !there && e.Standing == Gone:
		return nil
	case !there:
		return fmt.Errorf("rule %s does not exist", e.Rule)
	case e.Standing != "" && rule.Standing != e.Standing:
		return fmt.Errorf("rule %s is %s (%s), expected %s", e.Rule, rule.Standing, rule.Message, e.Standing)
	case !strings.Contains(rule.Message, e.Says):
		return fmt.Errorf("the message of rule %s is %q, expected %q in it", e.Rule, rule.Message, e.Says)
	}
	return nil
}

// subject returns e.g. "worker-1" or "a pod of shop on worker-1".
func (w *Why) subject() string {
	if w.Pod == "" {
		return w.Node
	}
	return "a pod of " + w.Pod + " on " + w.Node
}

func (w *Why) unmet(world *World) error {
	text, err := world.Why(w.Node, w.Pod)
	if err != nil {
		return fmt.Errorf("reading the explanation of %s: %w", w.subject(), err)
	}
	if !strings.Contains(text, w.Contains) {
		return fmt.Errorf("the explanation of %s is %q, expected %q in it", w.subject(), text, w.Contains)
	}
	return nil
}

func (l *Last) unmet(world *World) error {
	last, err := world.Last(l.Node)
	if err != nil {
		return fmt.Errorf("reading the last component from the metrics of the agent on %s: %w", l.Node, err)
	}
	if !slices.Equal(last, []string{l.Component}) {
		return fmt.Errorf("on %s the last components to become ready were %q, expected %s alone", l.Node, last, l.Component)
	}
	return nil
}
