package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/podrule"
)

// Gate is one gate of a pod.
type Gate struct {
	Name string `json:"gate"`
	// Rules are the rules with this gate that select the pod; none if the gate is abandoned.
	Rules []string `json:"rules,omitempty"`
	// Open reports whether the condition of the pod is True.
	Open bool `json:"open"`
	// LatchClosed reports that the gate is open but the pod's latch is still closed.
	LatchClosed bool `json:"latchClosed,omitempty"`
	// Since is when the gate opened. For a closed gate it is since when the pod waits, zero before the pod has a
	// sandbox.
	Since time.Time `json:"since,omitzero"`
	// Reason and Message are those of the gate's condition; empty if the pod has no such condition.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// Foreign means that another account set the gate to True while a component is not ready. Writer is the
	// field manager of that account; empty if unknown.
	Foreign bool   `json:"foreign,omitempty"`
	Writer  string `json:"writer,omitempty"`

	// For describes what a closed gate, or the latch of an open gate, waits for.
	For string `json:"for,omitempty"`
	// Due is when a closed gate is late; zero if never. Late means that this time has passed.
	Due  time.Time `json:"due,omitzero"`
	Late bool      `json:"late,omitempty"`
}

// gateOf returns a gate of the pod that rules use.
func gateOf(d *podrule.Decision, v *podrule.Verdict, obj *corev1.Pod, place Place, now time.Time) Gate {
	g := Gate{Name: v.Gate}
	if is := podCondition(obj, v.Gate); is != nil {
		g.Open, g.Since = is.Status == corev1.ConditionTrue, is.LastTransitionTime.Time
		g.Reason, g.Message = is.Reason, is.Message
	}
	for _, rule := range v.Rules {
		g.Rules = append(g.Rules, rule.Name)
	}
	if g.Foreign = v.Foreign && !v.Open; g.Foreign {
		g.Writer = podrule.Writers(obj.ManagedFields)[v.Gate]
	}
	if g.Open && !g.Foreign {
		if d.LatchHolds(v) {
			g.LatchClosed, g.Since, g.For = true, d.LatchClosed, "its latch: "+podrule.LatchClosedWords
		}
		return g
	}
	if !v.Waits.IsZero() {
		g.Since, g.Due = v.Waits, dueOf(v, componentsOf(v, obj, place))
	}
	g.Late = !g.Due.IsZero() && !now.Before(g.Due)
	g.For = waitsFor(v, &g, obj, place)
	return g
}

// writer returns the quoted name of the account that set a foreign gate to True.
func (g *Gate) writer() string {
	if g.Writer == "" {
		return "another account"
	}
	return strconv.Quote(g.Writer)
}

// Waits reports whether the pod waits because of the gate.
func (g *Gate) Waits() bool { return !g.Open || g.Foreign || g.LatchClosed }

// dueOf returns the earliest deadline of a rule with a component that is not ready; zero if there is none.
func dueOf(v *podrule.Verdict, components []Component) time.Time {
	var first time.Time
	for _, rule := range v.Rules {
		missing := slices.ContainsFunc(components, func(c Component) bool { return c.Rule == rule.Name && c.Result != ResultReady })
		if due := v.Waits.Add(rule.Deadline); missing && rule.Deadline > 0 && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// waitsFor describes what a closed gate waits for.
func waitsFor(v *podrule.Verdict, g *Gate, obj *corev1.Pod, place Place) string {
	named, names := strings.CutPrefix(g.Message, waitingFor)
	var text string
	switch {
	case abandoned(v, place):
		return "its gate to be opened: " + v.Message
	case g.Foreign:
		return fmt.Sprintf("%s; its gate was set to True by %s, not by Readygate", missingNames(v), g.writer())
	case obj.Spec.NodeName == "":
		return "a node: it is not scheduled"
	case !checked(v):
		text = "a network: the kubelet has not reported a sandbox"
	case names:
		text = named
	case g.Message != "":
		text = "its components: " + g.Message
	case v.Open:
		text = "its gate to be opened"
	case place.Agent.gone():
		return fmt.Sprintf("an agent: node %s has no live agent", obj.Spec.NodeName)
	default:
		text = "components that the agent has not reported yet"
	}
	if place.Agent.gone() {
		text += fmt.Sprintf("; node %s has no live agent", obj.Spec.NodeName)
	}
	return text
}

// missingNames returns the names of the components that are not ready.
func missingNames(v *podrule.Verdict) string {
	var names []string
	for _, m := range v.Missing {
		if !slices.Contains(names, m.Component) {
			names = append(names, m.Component)
		}
	}
	if len(names) == 0 {
		return "a network" // the pod has no sandbox yet
	}
	return strings.Join(names, ", ")
}

// abandoned reports whether no rule selects the pod for this gate anymore. This is unknown without the labels of the
// namespace.
func abandoned(v *podrule.Verdict, place Place) bool {
	return len(v.Rules) == 0 && place.Namespace != nil
}

// podCondition returns the pod's condition of a type; nil if it has none.
func podCondition(obj *corev1.Pod, conditionType string) *corev1.PodCondition {
	i := slices.IndexFunc(obj.Status.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == conditionType })
	if i < 0 {
		return nil
	}
	return &obj.Status.Conditions[i]
}
