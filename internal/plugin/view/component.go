package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Says is what a component says of a pod.
type Says string

const (
	// SaysYes says that its part of the pod's network is there.
	SaysYes Says = "yes"
	// SaysNo says that it is not.
	SaysNo Says = "no"
	// SaysUnknown says that nobody has told: only the agent on the node can ask.
	SaysUnknown Says = "unknown"
)

// Component is one component that a gate waits for beside what it says.
type Component struct {
	Rule string       `json:"rule"`
	Name string       `json:"name"`
	Kind podrule.Kind `json:"kind"`
	// How is how it answers, e.g. "pod condition policy.example.com/programmed".
	How string `json:"how"`

	Says Says `json:"says"`
	// Why is why that is not yes, in words.
	Why string `json:"why,omitempty"`
	// Since is since when a condition is as it is, and Writer who wrote it last, as the API server
	// knows; zero and empty for other kinds.
	Since  time.Time `json:"since,omitzero"`
	Writer string    `json:"writer,omitempty"`

	// unfilled says that it names an address that the pod does not have, and needsStart that it says yes only
	// when containers have started.
	unfilled, needsStart bool
}

// componentsOf are the components of a gate. Conditions are seen; of the others the gate's own
// condition tells what the agent reported.
func componentsOf(v *podrule.Verdict, obj *corev1.Pod, place Place) []Component {
	told := reportedIn(podCondition(obj, v.Gate), v.Rules)
	var all []Component
	for _, rule := range v.Rules {
		for i := range rule.Components {
			is := &rule.Components[i]
			c := Component{Rule: rule.Name, Name: is.Name, Kind: is.Kind, How: is.For(obj), unfilled: is.Unfilled(obj) != "", needsStart: is.NeedsStart()}
			if asks(v) {
				c.Says, c.Why = c.says(v, told, place)
			} else {
				c.Says, c.Why = SaysUnknown, "it is checked when the pod has a network"
			}
			all = append(all, c)
		}
	}
	return all
}

// asks says that the components of a closed gate were asked: the pod has a network.
func asks(v *podrule.Verdict) bool { return v.Open || len(v.Missing) > 0 }

// says is what the component says, and why that is not yes. A live agent knows more of a node's
// condition than it shows: when the node booted.
func (c *Component) says(v *podrule.Verdict, told reported, place Place) (Says, string) {
	says, why := told.of(c)
	switch {
	case c.Kind == podrule.PodCondition:
		return c.seen(v)
	case c.Kind == podrule.NodeCondition && place.Node != nil:
		if seen, seenWhy := c.seen(v); seen == SaysNo || says != SaysNo || place.Agent.gone() {
			return seen, seenWhy
		}
	}
	return says, why
}

// seen is what the verdict says of the component.
func (c *Component) seen(v *podrule.Verdict) (Says, string) {
	i := slices.IndexFunc(v.Missing, func(m podrule.Missing) bool { return m.Rule == c.Rule && m.Component == c.Name })
	if i < 0 {
		return SaysYes, ""
	}
	return SaysNo, v.Missing[i].Why
}

// reported is what the condition of a gate tells of components.
type reported struct {
	// missing are those that had not said yes, and why, by name or by rule and name.
	missing map[string]string
	// all says that no other one is missing.
	all bool
}

// of is what the message reports of the component.
func (h reported) of(c *Component) (Says, string) {
	for _, name := range []string{c.Rule + "/" + c.Name, c.Name} {
		if why, missing := h.missing[name]; missing {
			return SaysNo, why
		}
	}
	if h.all {
		return SaysYes, ""
	}
	return SaysUnknown, "only the agent on the pod's node can check it"
}

// reportedIn is what a gate's condition tells of the components of its rules.
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

// waitingFor is how the message of a closed gate begins that names components. A test holds that it
// is what package gating writes.
const waitingFor = "waiting for "

// parseWaiting reads "waiting for a (why), b (why)", in which only these names can be.
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

// leading is the name that the text begins with; empty if it is none of these.
func leading(text string, names []string) string {
	for _, name := range names {
		if rest, begins := strings.CutPrefix(text, name); begins && (rest == "" || strings.HasPrefix(rest, ", ") || strings.HasPrefix(rest, " (")) {
			return name
		}
	}
	return ""
}

// untilNext splits the text at the parenthesis that ends why a component has not said yes: after it
// comes the next one, or nothing. Within, anything can be.
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
