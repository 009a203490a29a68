package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// PodExplanation is the full explanation of one pod, with the next steps.
type PodExplanation struct {
	Pod

	// Headline is the answer in one sentence.
	Headline string `json:"headline"`
	// Chapters are the gates of rules that the pod has. Gates that it waits for come first.
	Chapters []GateChapter `json:"chapters,omitempty"`
	// Excluded is the reason why no rule may select the pod; empty if rules may.
	Excluded string `json:"excluded,omitempty"`
	// Passed are the rules that do not select the pod; set only if no rule selects it.
	Passed []Passed `json:"passed,omitempty"`
	Latch  Latch    `json:"latch"`

	Phase corev1.PodPhase `json:"phase,omitempty"`
	// Ready is the status of the condition Ready; Unknown if it is absent.
	Ready corev1.ConditionStatus `json:"ready"`
	// OtherGates are closed readiness gates that belong to no rule.
	OtherGates []string `json:"otherGates,omitempty"`

	// Events are the events of the pod about its network, oldest first.
	Events []Event `json:"events,omitempty"`
	// Next are the next steps, most important first.
	Next []string `json:"next,omitempty"`
	// Unseen is what could not be read, with the reason.
	Unseen []string `json:"unseen,omitempty"`
}

// GateChapter is the explanation of one gate.
type GateChapter struct {
	Gate

	// Text is the state of the gate in one sentence, without its subject.
	Text       string      `json:"text"`
	Components []Component `json:"components,omitempty"`

	// about means that the gate is about to be opened.
	about bool
	// unchecked means that no component is checked yet: the pod has no sandbox.
	unchecked bool
}

// Explanation is the whole explanation of the pod. What could not be read is part of it.
func (b *PodBook) Explanation(obj *corev1.Pod, place Place, events []corev1.Event, unseen []string, now time.Time) PodExplanation {
	subject := subjectOf(obj, place)
	explanation := PodExplanation{
		Pod: b.Pod(obj, place, now), Latch: latchOf(obj, subject.Node.BootID), Phase: obj.Status.Phase, Ready: corev1.ConditionUnknown,
		Excluded: excluded(obj), Unseen: unseen,
		Events: eventsAbout("Pod", obj, events, func(e *corev1.Event) bool {
			return reportedBy(e, v1alpha1.Reporter, nodev1alpha1.Reporter) || slices.Contains(networkEvents, e.Reason)
		}),
	}
	if ready := podCondition(obj, string(corev1.PodReady)); ready != nil {
		explanation.Ready = ready.Status
	}
	explanation.Chapters = b.gateChapters(obj, place, explanation.Gates, now)
	explanation.OtherGates = otherGates(obj, explanation.Gates)
	if explanation.Excluded == "" && !slices.ContainsFunc(b.rules, func(r *podrule.Rule) bool { return r.Active() && r.Selects(obj, place.Namespace) }) {
		explanation.Passed = b.passed(obj, place)
	}
	explanation.Headline = explanation.headline(now)
	explanation.Next = b.advice(&explanation)
	explanation.Gates = nil // the chapters have them
	return explanation
}

// gateChapters returns the gates with the current result of each component, for open and closed gates.
func (b *PodBook) gateChapters(obj *corev1.Pod, place Place, gates []Gate, now time.Time) []GateChapter {
	// The decision of the node's agent, or of the manager if the node has no agent.
	decided := podrule.Decide(b.rules, subjectOf(obj, place), unknownProbe, now)
	if place.Agent.gone() {
		decided = podrule.Orphan(b.rules, subjectOf(obj, place), now)
	}
	asked := podrule.Decide(b.rules, subjectOf(unanswered(obj, gates), place), unknownProbe, now)
	writers := podrule.Writers(obj.ManagedFields)
	var waiting, others []GateChapter
	for _, gate := range gates {
		chapter := GateChapter{Gate: gate}
		if v := verdictOn(&asked, gate.Name); v != nil {
			answered := obj
			if gate.Foreign { // its condition is not what the agent wrote
				answered = unanswered(obj, gates)
			}
			chapter.Components, chapter.unchecked = componentsOf(v, answered, place), !checked(v)
		}
		for i := range chapter.Components {
			b.attribute(&chapter.Components[i], obj, place, writers)
		}
		chapter.describe(verdictOn(&decided, gate.Name), place, now)
		if chapter.Waits() {
			waiting = append(waiting, chapter)
		} else {
			others = append(others, chapter)
		}
	}
	return append(waiting, others...)
}

func verdictOn(d *podrule.Decision, gate string) *podrule.Verdict {
	i := slices.IndexFunc(d.Verdicts, func(v podrule.Verdict) bool { return v.Gate == gate })
	if i < 0 {
		return nil
	}
	return &d.Verdicts[i]
}

// unanswered returns the pod without the conditions of these gates, so that all components are evaluated.
func unanswered(obj *corev1.Pod, gates []Gate) *corev1.Pod {
	pod := *obj
	pod.Status.Conditions = slices.DeleteFunc(slices.Clone(obj.Status.Conditions), func(c corev1.PodCondition) bool {
		return slices.ContainsFunc(gates, func(g Gate) bool { return g.Name == string(c.Type) })
	})
	return &pod
}

// attribute sets the transition time and the writer of a component that is a condition.
func (b *PodBook) attribute(c *Component, obj *corev1.Pod, place Place, writers map[string]string) {
	spec := b.objects[c.Rule].Spec.Components
	i := slices.IndexFunc(spec, func(s v1alpha1.Component) bool { return s.Name == c.Name })
	switch {
	case i < 0:
	case spec[i].PodCondition != nil:
		if is := podCondition(obj, spec[i].PodCondition.Type); is != nil {
			c.Since, c.Writer = is.LastTransitionTime.Time, writers[string(is.Type)]
		}
	case spec[i].NodeCondition != nil && place.Node != nil:
		if is := condition(place.Node.Status.Conditions, spec[i].NodeCondition.Type); is != nil {
			c.Since, c.Writer = is.LastTransitionTime.Time, podrule.Writers(place.Node.ManagedFields)[string(is.Type)]
		}
	}
}

// describe sets the state of the gate in one sentence.
func (c *GateChapter) describe(v *podrule.Verdict, place Place, now time.Time) {
	said := strings.Join(slices.DeleteFunc([]string{c.Reason, c.Message}, func(s string) bool { return s == "" }), ", ")
	if said != "" {
		said = ": " + said
	}
	switch {
	case c.Foreign:
		c.Text = "is True but was not set by Readygate, and waits for " + c.For
	case c.Open && !v.Open && place.Node != nil && !place.Agent.gone():
		c.Text = "is open, and about to be closed: " + v.Message
	case c.LatchClosed:
		c.Text = "is open" + forHow(c.Since, now) + ", but the latch of the pod is still closed" + said
	case c.Open:
		c.Text = "is open" + forHow(c.Since, now) + said
	case abandoned(v, place), v.Open && len(v.Rules) > 0:
		c.about = true
		c.Text = "is closed" + forHow(c.Since, now) + ", and about to be opened: " + v.Message
	case said != "":
		c.Text = "is closed" + forHow(c.Since, now) + said
	default:
		c.Text = "is closed" + forHow(c.Since, now) + ", and waits for " + c.For
	}
}

// otherGates returns the closed gates of the pod that are not among these.
func otherGates(obj *corev1.Pod, gates []Gate) []string {
	var others []string
	for _, other := range obj.Spec.ReadinessGates {
		name := string(other.ConditionType)
		ours := slices.ContainsFunc(gates, func(g Gate) bool { return g.Name == name })
		if is := podCondition(obj, name); !ours && !slices.Contains(others, name) && (is == nil || is.Status != corev1.ConditionTrue) {
			others = append(others, name)
		}
	}
	return others
}

// headline returns the answer in one sentence.
func (s *PodExplanation) headline(now time.Time) string {
	switch s.State {
	case PodOver:
		if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
			return fmt.Sprintf("%s has ended (%s) and no longer waits for its network", s.Key(), s.Phase)
		}
		return s.Key() + " is being deleted and no longer waits for its network"
	case PodWaiting:
		return s.Key() + s.waits(now)
	case PodUngated:
		return fmt.Sprintf("%s does not carry the gate of rule %s, which selects it: %s", s.Key(), s.Ungated[0].Rule, s.Ungated[0].Why)
	case PodOpen:
		for i := range s.Chapters {
			if c := &s.Chapters[i]; c.Open && (c.Reason == v1alpha1.ReasonDeadline || c.Reason == v1alpha1.ReasonAgentGone) && c.Message != "" {
				return s.Key() + " may have no network, although its gate is open: " + c.Message
			}
		}
		return s.Key() + " does not wait: every gate that belongs to a rule is open"
	}
	return s.unselected()
}

// waits returns for how long the pod waits, and for what.
func (s *PodExplanation) waits(now time.Time) string {
	var parts []string
	for i := range s.Chapters {
		if c := &s.Chapters[i]; c.Waits() && !slices.Contains(parts, c.For) {
			parts = append(parts, c.For)
		}
	}
	text := " waits for "
	if !s.Since.IsZero() {
		text = " has waited " + Age(s.Since, now) + " for "
	}
	if s.Late {
		text = " is late: it" + text
	}
	return text + strings.Join(parts, "; and for ")
}

func (s *PodExplanation) unselected() string {
	switch {
	case s.Excluded != "":
		return "no rule selects " + s.Key() + ": " + s.Excluded
	case len(s.Passed) == 0:
		return "there is no PodReadinessRule, so " + s.Key() + " does not wait for its network"
	case len(s.Passed) == 1:
		return fmt.Sprintf("no rule selects %s: rule %s does not, because %s", s.Key(), s.Passed[0].Rule, s.Passed[0].Why)
	}
	return "no rule selects " + s.Key()
}

// networkEvents are the reasons of events about a pod's network that other components emit.
var networkEvents = []string{"FailedCreatePodSandBox", "SandboxChanged", "NetworkNotReady"}
