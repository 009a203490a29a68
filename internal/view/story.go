package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/readiness"
)

// Story is all there is to say about one node, and what to do next.
type Story struct {
	Node

	// Headline is the answer in one sentence.
	Headline string `json:"headline"`
	// Chapters are the rules that speak of the node, those that hold it first.
	Chapters []Chapter `json:"chapters,omitempty"`
	// Events are those of the node that tell of rules, oldest first.
	Events []Event `json:"events,omitempty"`
	// Next is what to do, most important first.
	Next []string `json:"next,omitempty"`
	// Unseen is what could not be looked at, and why.
	Unseen []string `json:"unseen,omitempty"`
}

// Chapter is what one rule has to do with the node.
type Chapter struct {
	Standing

	// Text says it in one sentence.
	Text string                   `json:"text"`
	Mode v1alpha1.EnforcementMode `json:"mode"`
	// AnyOf says that one met requirement is enough.
	AnyOf        bool          `json:"anyOf,omitempty"`
	Requirements []Requirement `json:"requirements,omitempty"`
	// Refused is why the API server does not let the node be written; empty if it does.
	Refused string `json:"refused,omitempty"`
	// Problem is why the rule does nothing, though it selects the node.
	Problem string `json:"problem,omitempty"`
}

// Requirement is one requirement of a rule beside what the node says.
type Requirement struct {
	Type     string                 `json:"type"`
	Required corev1.ConditionStatus `json:"required"`
	Current  corev1.ConditionStatus `json:"current"`
	Met      bool                   `json:"met"`
	// Absent says that the node has no such condition; Default that Current is the rule's
	// defaultStatus.
	Absent  bool `json:"absent,omitempty"`
	Default bool `json:"default,omitempty"`

	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	// Writer is who wrote the condition last, as the API server knows it; empty if unknown.
	Writer string `json:"writer,omitempty"`
}

// Event is something that happened to the node.
type Event struct {
	At     time.Time `json:"at"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	Note   string    `json:"note"`
	Count  int32     `json:"count,omitempty"`
}

// Story is the whole story of the node. What could not be seen is part of it.
func (b *Book) Story(obj *corev1.Node, events []corev1.Event, unseen []string, now time.Time) Story {
	story := Story{Node: b.Node(obj), Unseen: unseen, Events: eventsOf(obj, events)}
	writers := writersOf(obj.ManagedFields)
	node := readiness.NodeOf(obj)
	for _, rule := range b.compiled.Rules() {
		if chapter, speaks := b.chapter(rule, node, story.Rules, writers); speaks {
			story.Chapters = append(story.Chapters, chapter)
		}
	}
	slices.SortStableFunc(story.Chapters, func(a, b Chapter) int { return cmp.Compare(a.rank(), b.rank()) })
	story.Headline = story.headline(now)
	story.Next = story.advice(now)
	story.Rules = nil // the chapters have them
	return story
}

func (b *Book) chapter(rule *readiness.Rule, node *readiness.Node, standings []Standing, writers map[string]string) (Chapter, bool) {
	obj := b.objects[rule.UID]
	chapter := Chapter{Mode: obj.Spec.EnforcementMode, AnyOf: rule.AnyOf}
	if rule.Problem != nil && rule.Selects(node) {
		chapter.Problem = rule.Problem.Message
	}
	if i := slices.IndexFunc(standings, func(s Standing) bool { return s.Rule == rule.Name }); i >= 0 {
		chapter.Standing = standings[i]
	} else if chapter.Problem != "" {
		chapter.Standing = Standing{Rule: rule.Name, Taint: rule.ID().String(), State: readiness.NotSelected, Settled: true}
	} else {
		return chapter, false
	}
	for _, o := range readiness.Observe(rule, node) {
		chapter.Requirements = append(chapter.Requirements, requirementOf(o, node, writers))
	}
	for _, failed := range obj.Status.FailedNodes {
		if failed.NodeName == node.Name && !chapter.Settled {
			chapter.Refused = failed.Message
		}
	}
	chapter.Text = chapter.text(rule)
	return chapter, true
}

func requirementOf(o readiness.Observation, node *readiness.Node, writers map[string]string) Requirement {
	r := Requirement{
		Type: o.Requirement.Type, Required: o.Requirement.RequiredStatus, Current: o.Current, Met: o.Met(),
		Absent: o.Missing, Default: o.Missing && o.Requirement.DefaultStatus != "",
		Writer: writers[o.Requirement.Type],
	}
	if c := condition(node.Conditions, o.Requirement.Type); c != nil {
		r.Reason, r.Message = c.Reason, c.Message
		r.Since, r.Heartbeat = c.LastTransitionTime.Time, c.LastHeartbeatTime.Time
	}
	return r
}

// rank orders chapters: what holds the node, what will change, what does nothing, the rest.
func (c Chapter) rank() int {
	switch {
	case c.Held:
		return 0
	case !c.Settled && !c.Preview:
		return 1
	case c.Problem != "":
		return 2
	}
	return 3
}

// text says how the rule stands, in a sentence.
func (c Chapter) text(rule *readiness.Rule) string {
	switch {
	case c.Problem != "":
		return "selects this node and does nothing: " + c.Problem
	case c.Refused != "":
		return "cannot change this node: the API server refuses"
	case rule.Deleting:
		return "is being deleted; what it put on this node is about to be taken back"
	case c.Preview:
		return c.previewed()
	case c.State == readiness.NotSelected:
		return "no longer selects this node; its taint is about to be taken off"
	case c.State == readiness.Held && !c.Held:
		return "is about to hold this node: its taint is not there yet"
	case c.State == readiness.Held:
		return "holds this node" + map[readiness.Origin]string{
			readiness.OriginBorn:     ", which was born with the taint",
			readiness.OriginLabelled: ", which got the taint along with a label",
			readiness.OriginAdopted:  " with a taint that was there before",
		}[c.Origin]
	case c.Held:
		return "is about to release this node: its requirements are met"
	case c.Completed:
		return "has released this node for good (bootstrap-only)"
	case !c.Settled:
		return "is about to record that it has released this node for good (bootstrap-only)"
	}
	return "does not hold this node: its requirements are met"
}

// previewed says what a rule that changes nothing would do.
func (c Chapter) previewed() string {
	switch {
	case c.Held:
		return "only previews now, and leaves the hold of before as it is"
	case c.State == readiness.Held:
		return "only previews: it would hold this node"
	}
	return "only previews: it would not hold this node"
}

// headline is the answer in one sentence.
func (s Story) headline(now time.Time) string {
	switch s.State {
	case readiness.Held:
		return s.Name + " is held" + forHow(s.Since, now) + " by " + s.holders()
	case readiness.Released:
		if about := s.aboutTo(readiness.Held); about != "" {
			return s.Name + " is not held yet: rule " + about + " is about to hold it"
		}
		if len(s.OtherTaints) > 0 || s.Unschedulable {
			return s.Name + " is released by every rule; something else keeps pods away"
		}
		return s.Name + " is released: no rule holds it"
	}
	return "no rule that is enforced selects " + s.Name
}

// holders names the rules that hold the node, and what each misses.
func (s Story) holders() string {
	var parts []string
	for _, c := range s.Chapters {
		if !c.Held {
			continue
		}
		parts = append(parts, "rule "+c.Rule+c.because())
	}
	return strings.Join(parts, "; and by ")
}

// because says why the rule holds the node.
func (c Chapter) because() string {
	var missing []string
	for _, m := range c.Missing {
		missing = append(missing, m.String())
	}
	switch {
	case c.Preview:
		return ", which only previews now and leaves its hold of before as it is"
	case len(missing) > 1 && c.AnyOf:
		return ": " + strings.Join(missing, ", or ") + " (one is enough)"
	case len(missing) > 0:
		return ": " + strings.Join(missing, " and ")
	case c.Refused != "":
		return ", which the API server does not let release it"
	}
	return ", which is about to release it"
}

// aboutTo is a rule that wants this state and has not got it.
func (s Story) aboutTo(state readiness.State) string {
	for _, c := range s.Chapters {
		if !c.Preview && c.State == state && c.Held != (state == readiness.Held) {
			return c.Rule
		}
	}
	return ""
}

// forHow reads as in " for 3m"; empty if nobody knows.
func forHow(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + Age(since, now)
}

// eventsOf are the events of the node that tell of rules, or of pods that could not start.
func eventsOf(node *corev1.Node, events []corev1.Event) []Event {
	var told []Event
	for _, e := range events {
		about := e.InvolvedObject
		if about.Kind != "Node" || about.Name != node.Name || about.UID != "" && about.UID != node.UID && string(about.UID) != node.Name {
			continue
		}
		if e.ReportingController != v1alpha1.Reporter && e.Source.Component != v1alpha1.Reporter {
			continue
		}
		told = append(told, Event{At: lastOf(e), Type: e.Type, Reason: e.Reason, Note: e.Message, Count: countOf(e)})
	}
	slices.SortStableFunc(told, func(a, b Event) int { return a.At.Compare(b.At) })
	return told
}

// lastOf is when an event last happened, in whichever form of the API it was written.
func lastOf(e corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	for _, at := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if last.IsZero() {
			last = at
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}

func countOf(e corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}

// Age is how long ago something was, in the largest unit that says enough: 40s, 3m20s, 5h, 12d.
func Age(since, now time.Time) string {
	age := max(0, now.Sub(since))
	switch {
	case age < 2*time.Minute:
		return fmt.Sprintf("%ds", int(age.Seconds()))
	case age < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", int(age.Minutes()), int(age.Seconds())%60)
	case age < 2*time.Hour:
		return fmt.Sprintf("%dm", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh", int(age.Hours()))
	}
	return fmt.Sprintf("%dd", int(age.Hours()/24))
}
