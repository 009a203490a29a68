package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Result is the result of a component for a pod.
type Result string

const (
	// ResultReady means that the component's part of the pod's network is ready.
	ResultReady Result = "yes"
	// ResultNotReady means that it is not ready.
	ResultNotReady Result = "no"
	// ResultUnknown means that there is no result: only the agent on the node can check.
	ResultUnknown Result = "unknown"
)

// Component is one component that a gate waits for, with its result.
type Component struct {
	Rule string       `json:"rule"`
	Name string       `json:"name"`
	Kind podrule.Kind `json:"kind"`
	// How is the component's check, e.g. "pod condition policy.example.com/programmed".
	How string `json:"how"`

	Result Result `json:"says"`
	// Why is the reason if the component is not ready; empty otherwise.
	Why string `json:"why,omitempty"`
	// Since is the last transition of a condition. Writer is the field manager that wrote it last. Both are empty
	// for other kinds.
	Since  time.Time `json:"since,omitzero"`
	Writer string    `json:"writer,omitempty"`

	// unfilled means that the component uses an address that the pod does not have. needsStart means that it can
	// become ready only after containers have started.
	unfilled, needsStart bool
}

// componentsOf returns the components of a gate. The results of conditions are read from the objects. The other
// results come from the gate's own condition, which the agent wrote.
func componentsOf(v *podrule.Verdict, obj *corev1.Pod, place Place) []Component {
	known := reportedIn(podCondition(obj, v.Gate), v.Rules)
	var all []Component
	for _, rule := range v.Rules {
		for i := range rule.Components {
			is := &rule.Components[i]
			c := Component{Rule: rule.Name, Name: is.Name, Kind: is.Kind, How: is.For(obj), unfilled: is.Unfilled(obj) != "", needsStart: is.NeedsStart()}
			if checked(v) {
				c.Result, c.Why = c.result(v, known, place)
			} else {
				c.Result, c.Why = ResultUnknown, "it is checked when the pod has a network"
			}
			all = append(all, c)
		}
	}
	return all
}

// checked reports whether the components of a closed gate are checked: the pod has a sandbox.
func checked(v *podrule.Verdict) bool { return v.Open || len(v.Missing) > 0 }

// result returns the result of the component, and the reason if it is not ready. For a node condition, a live agent
// also takes the boot of the node into account, which the condition does not show.
func (c *Component) result(v *podrule.Verdict, known reported, place Place) (Result, string) {
	result, why := known.of(c)
	switch {
	case c.Kind == podrule.PodCondition:
		return c.seen(v)
	case c.Kind == podrule.NodeCondition && place.Node != nil:
		if seen, seenWhy := c.seen(v); seen == ResultNotReady || result != ResultNotReady || place.Agent.gone() {
			return seen, seenWhy
		}
	}
	return result, why
}

// seen returns the verdict's result for the component.
func (c *Component) seen(v *podrule.Verdict) (Result, string) {
	i := slices.IndexFunc(v.Missing, func(m podrule.Missing) bool { return m.Rule == c.Rule && m.Component == c.Name })
	if i < 0 {
		return ResultReady, ""
	}
	return ResultNotReady, v.Missing[i].Why
}

// reported holds the results of components that the condition of a gate contains.
type reported struct {
	// missing maps each component that was not ready to the reason, by name or by rule and name.
	missing map[string]string
	// all means that every other component is ready.
	all bool
}

// of returns the reported result of the component.
func (h reported) of(c *Component) (Result, string) {
	for _, name := range []string{c.Rule + "/" + c.Name, c.Name} {
		if why, missing := h.missing[name]; missing {
			return ResultNotReady, why
		}
	}
	if h.all {
		return ResultReady, ""
	}
	return ResultUnknown, "only the agent on the pod's node can check it"
}

// reportedIn reads the results of the components of these rules from a gate's condition.
func reportedIn(is *corev1.PodCondition, rules []*podrule.Rule) reported {
	switch {
	case is == nil:
		return reported{}
	case is.Status == corev1.ConditionTrue && is.Reason == v1alpha1.ReasonAllReady:
		return reported{all: true}
	case is.Reason != v1alpha1.ReasonWaiting && is.Reason != v1alpha1.ReasonDeadline:
		return reported{}
	}
	var names []string
	for _, rule := range rules {
		for i := range rule.Components {
			names = append(names, rule.Components[i].Name, rule.Name+"/"+rule.Components[i].Name)
		}
	}
	return parseWaiting(is.Message, names)
}

// waitingFor is the prefix of a closed gate's message that names components. A test compares it with the message
// that package podrule writes.
const waitingFor = "waiting for "

// parseWaiting parses "waiting for a (why), b (why)", which contains only these names.
func parseWaiting(message string, names []string) reported {
	_, rest, found := strings.Cut(message, waitingFor)
	if !found {
		return reported{}
	}
	h := reported{missing: map[string]string{}, all: !strings.HasSuffix(message, "…")} // else it was cut
	for rest != "" {
		name := leading(rest, names)
		if name == "" {
			h.all = false
			return h
		}
		why := ""
		rest = rest[len(name):]
		if words, has := strings.CutPrefix(rest, " ("); has {
			why, rest = untilNext(words, names)
		}
		h.missing[name] = why
		rest = strings.TrimPrefix(rest, ", ")
	}
	return h
}

// leading returns the name that the text starts with; empty if none of them.
func leading(text string, names []string) string {
	for _, name := range names {
		if rest, begins := strings.CutPrefix(text, name); begins && (rest == "" || strings.HasPrefix(rest, ", ") || strings.HasPrefix(rest, " (")) {
			return name
		}
	}
	return ""
}

// untilNext splits the text after the parenthesis that closes the reason of a component. The next component or
// the end of the text follows. The reason itself can contain any characters.
func untilNext(text string, names []string) (why, rest string) {
	for i := range len(text) {
		if text[i] != ')' {
			continue
		}
		next, more := strings.CutPrefix(text[i+1:], ", ")
		if i+1 == len(text) || more && leading(next, names) != "" {
			return text[:i], text[i+1:]
		}
	}
	return strings.TrimSuffix(text, "…"), ""
}
