package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Explanation is the full explanation of one node, with the next steps.
type Explanation struct {
	Node

	// Headline is the answer in one sentence.
	Headline string `json:"headline"`
	// Chapters are the rules that select or hold the node. Rules that hold it come first.
	Chapters []Chapter `json:"chapters,omitempty"`
	// Events are the manager's events on the node, oldest first.
	Events []Event `json:"events,omitempty"`
	// Next are the next steps, most important first.
	Next []string `json:"next,omitempty"`
	// Unseen is what could not be read, with the reason.
	Unseen []string `json:"unseen,omitempty"`
}

// Chapter is the explanation of one rule for the node.
type Chapter struct {
	Standing

	// Text is the state of the rule in one sentence, without its subject.
	Text string                   `json:"text"`
	Mode v1alpha1.EnforcementMode `json:"mode"`
	// AnyOf means that one met requirement is enough.
	AnyOf        bool          `json:"anyOf,omitempty"`
	Requirements []Requirement `json:"requirements,omitempty"`
	// Refused is the API server's message if it rejects writes to the node; else empty.
	Refused string `json:"refused,omitempty"`
	// Problem is the reason why the rule has no effect, although it selects the node.
	Problem string `json:"problem,omitempty"`
	// Blocked names the DaemonSets that must run before the rule can release nodes, and that cannot start.
	Blocked string `json:"blocked,omitempty"`
}

// Requirement is one requirement of a rule, with the current status on the node.
type Requirement struct {
	Type     string                 `json:"type"`
	Required corev1.ConditionStatus `json:"required"`
	Current  corev1.ConditionStatus `json:"current"`
	Met      bool                   `json:"met"`
	// Absent means that the node has no such condition. Default means that Current is the rule's defaultStatus.
	Absent  bool `json:"absent,omitempty"`
	Default bool `json:"default,omitempty"`

	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	// Writer is the field manager that wrote the condition last; empty if unknown.
	Writer string `json:"writer,omitempty"`
	// WhyUnknown is the reason why the node's status counts as Unknown; empty if the status counts.
	WhyUnknown string `json:"whyUnknown,omitempty"`
}

// Event is an event on the node or pod.
type Event struct {
	At     time.Time `json:"at"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	Note   string    `json:"note"`
	Count  int32     `json:"count,omitempty"`
}

// Explanation is the whole explanation of the node. What could not be read is part of it.
func (b *Book) Explanation(obj *corev1.Node, events []corev1.Event, unseen []string, now time.Time) Explanation {
	explanation := Explanation{
		Node: b.Node(obj, now), Unseen: unseen,
		Events: eventsAbout("Node", obj, events, func(e *corev1.Event) bool { return reportedBy(e, v1alpha1.Reporter) }),
	}
	writers := podrule.Writers(obj.ManagedFields)
	node := noderule.NodeOf(obj)
	for _, rule := range b.compiled.Rules() {
		if chapter, concerned := b.chapter(rule, node, explanation.Rules, writers, now); concerned {
			explanation.Chapters = append(explanation.Chapters, chapter)
		}
	}
	slices.SortStableFunc(explanation.Chapters, func(a, b Chapter) int { return cmp.Compare(a.rank(), b.rank()) })
	explanation.Headline = explanation.headline(now)
	explanation.Next = append(b.waiting(), explanation.advice(now)...)
	explanation.Rules = nil // they are part of Chapters
	return explanation
}

// waiting returns the next step if the manager waits for another controller. It is the same for every rule.
func (b *Book) waiting() []string {
	for _, rule := range b.compiled.Rules() {
		if waits := soleController(b.objects[rule.UID].Status.Conditions, v1alpha1.ReasonWaitingForLease); waits != "" {
			return []string{waits}
		}
	}
	return nil
}

func (b *Book) chapter(rule *noderule.Rule, node *noderule.Node, standings []Standing, writers map[string]string, now time.Time) (Chapter, bool) {
	obj := b.objects[rule.UID]
	chapter := Chapter{Mode: obj.Spec.EnforcementMode, AnyOf: rule.AnyOf}
	if rule.Problem != nil && rule.Selects(node) {
		chapter.Problem = rule.Problem.Message
	}
	if i := slices.IndexFunc(standings, func(s Standing) bool { return s.Rule == rule.Name }); i >= 0 {
		chapter.Standing = standings[i]
	} else if chapter.Problem != "" {
		chapter.Standing = Standing{Rule: rule.Name, Taint: rule.ID().String(), State: noderule.NotSelected, Settled: true}
	} else {
		return chapter, false
	}
	for _, o := range noderule.Observe(rule, node, now) {
		chapter.Requirements = append(chapter.Requirements, requirementOf(o, node, writers))
	}
	for _, failed := range obj.Status.FailedNodes {
		if failed.NodeName == node.Name && !chapter.Settled {
			chapter.Refused = failed.Message
		}
	}
	chapter.Blocked = blocked(obj)
	chapter.Text = chapter.text(rule, now)
	return chapter, true
}

func requirementOf(o noderule.Observation, node *noderule.Node, writers map[string]string) Requirement {
	r := Requirement{
		Type: o.Requirement.Type, Required: o.Requirement.RequiredStatus, Current: o.Current, Met: o.Met(),
		Absent: o.Missing, Default: o.Missing && o.Requirement.DefaultStatus != "",
		Writer: writers[o.Requirement.Type], WhyUnknown: o.WhyUnknown(),
	}
	if c := condition(node.Conditions, o.Requirement.Type); c != nil {
		r.Reason, r.Message = c.Reason, c.Message
		r.Since, r.Heartbeat = o.Since, c.LastHeartbeatTime.Time
	}
	return r
}

// rank orders chapters: rules that hold the node, rules that are about to change it, rules without effect, the rest.
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

// text returns the state of the rule in one sentence, without its subject.
func (c Chapter) text(rule *noderule.Rule, now time.Time) string {
	switch {
	case c.Problem != "":
		return "selects this node but has no effect: " + c.Problem
	case c.Refused != "":
		return "cannot change this node: the API server rejects the change"
	case rule.Deleting:
		return "is being deleted; its taint and annotations are about to be removed from this node"
	case c.Preview:
		return c.previewed()
	case c.Cause != "":
		return c.caused(rule, now)
	case c.State == noderule.NotSelected:
		return "no longer selects this node; its taint is about to be removed"
	case c.State == noderule.Held && !c.Held:
		return "is about to hold this node: the taint has not been added yet"
	case c.State == noderule.Held:
		return "holds this node" + map[noderule.Origin]string{
			noderule.OriginCreated:  ", which was created with the taint",
			noderule.OriginLabelled: ", which was tainted by the request that added a label",
			noderule.OriginAdopted:  " with a taint that already existed",
		}[c.Origin]
	case c.Held:
		return "is about to release this node: its requirements are met"
	case c.Completed:
		return "has released this node " + forGood(rule)
	case !c.Settled:
		return "is about to record that it has released this node " + forGood(rule)
	}
	return "does not hold this node: its requirements are met"
}

// forGood returns for how long a bootstrap-only rule releases a node.
func forGood(rule *noderule.Rule) string {
	if rule.Boot {
		return "for this boot (bootstrapScope Boot)"
	}
	return "permanently (bootstrap-only)"
}

// caused describes a rule whose verdict does not follow from its requirements alone.
func (c Chapter) caused(rule *noderule.Rule, now time.Time) string {
	holds, released := "is about to hold this node", "released this node"
	if c.Held {
		holds, released = "holds this node", "is about to release this node"
	}
	switch c.Cause {
	case noderule.CauseMinReady:
		return fmt.Sprintf("%s: its requirements are met and must remain met for %s (minReadySeconds); %s left", holds, rule.MinReady, Age(now, c.Until))
	case noderule.CauseNotReady:
		return holds + ": the node is not Ready and may return from a reboot without its network (bootstrapScope Boot)"
	case noderule.CauseLimit:
		return fmt.Sprintf("would hold this node, but leaves it released: maxUnavailable (%s) is reached", rule.MaxUnavailable)
	case noderule.CauseDeadline:
		if c.Completed {
			return "released this node at its deadline, " + forGood(rule) + ": its requirements were not met at that time (onDeadline Release)"
		}
		return fmt.Sprintf("%s after %s, although its requirements are not met (onDeadline Release)", released, rule.Deadline)
	case noderule.CauseDependency:
		if c.State == noderule.Held {
			return holds + " and does not release it until rule " + c.WaitsFor + " has released it (dependsOn)"
		}
		return "does not change this node until rule " + c.WaitsFor + " has released it (dependsOn)"
	}
	return ""
}

// previewed describes what a dry-run rule would do.
func (c Chapter) previewed() string {
	switch {
	case c.Held:
		return "is now a dry run and keeps its earlier hold on this node"
	case c.Cause == noderule.CauseLimit:
		return "is a dry run: it would leave this node released, because maxUnavailable would be reached"
	case c.State == noderule.Held:
		return "is a dry run: it would hold this node"
	}
	return "is a dry run: it would not hold this node"
}

// headline returns the answer in one sentence.
func (s Explanation) headline(now time.Time) string {
	switch s.State {
	case noderule.Held:
		held := " is held"
		if slices.ContainsFunc(s.Chapters, func(c Chapter) bool { return c.Held && c.Stuck }) {
			held = " is stuck: held"
		}
		return s.Name + held + forHow(s.Since, now) + " by " + s.holders()
	case noderule.Released:
		if i := slices.IndexFunc(s.Chapters, func(c Chapter) bool { return !c.Preview && c.State == noderule.Held && !c.Held }); i >= 0 {
			return s.Name + " is not held yet: rule " + s.Chapters[i].Rule + " is about to hold it"
		}
		if len(s.OtherTaints) > 0 || s.Unschedulable {
			return s.Name + " is released by every rule; another taint or a cordon keeps pods away"
		}
		if spared := s.spared(); spared != "" {
			return s.Name + " is released, although " + spared
		}
		return s.Name + " is released: no rule holds it"
	}
	return "no enforced rule selects " + s.Name
}

// spared describes the first rule that leaves the node released although its requirements are not met.
func (s Explanation) spared() string {
	for _, c := range s.Chapters {
		if c.releasedAnyway() {
			return "the requirements of rule " + c.Rule + " are not met: " + map[noderule.Cause]string{
				noderule.CauseLimit: "maxUnavailable is reached", noderule.CauseDeadline: "its deadline has passed (onDeadline Release)",
			}[c.Cause]
		}
	}
	return ""
}

// releasedAnyway reports whether the rule leaves the node released although its requirements are not met now.
func (c Chapter) releasedAnyway() bool {
	return !c.Preview && c.State == noderule.Released && !c.Completed && (c.Cause == noderule.CauseLimit || c.Cause == noderule.CauseDeadline)
}

// holders names the rules that hold the node, each with its reason.
func (s Explanation) holders() string {
	var parts []string
	for _, c := range s.Chapters {
		if c.Held {
			parts = append(parts, "rule "+c.Rule+c.because())
		}
	}
	return strings.Join(parts, "; and by ")
}

// because returns why the rule holds the node.
func (c Chapter) because() string {
	var missing []string
	for _, m := range c.Missing {
		missing = append(missing, m.String())
	}
	switch {
	case c.Preview:
		return ", which is now a dry run and keeps its earlier hold"
	case c.Cause == noderule.CauseDependency:
		return ", which waits for rule " + c.WaitsFor
	case c.Cause == noderule.CauseMinReady:
		return ", whose requirements are met but must remain met for minReadySeconds"
	case c.Cause == noderule.CauseNotReady:
		return ": the node is not Ready and may return from a reboot"
	case len(missing) > 1 && c.AnyOf:
		return ": " + strings.Join(missing, ", or ") + " (one is enough)"
	case len(missing) > 0:
		return ": " + strings.Join(missing, " and ")
	case c.Refused != "":
		return ", but the API server rejects the release"
	}
	return ", which is about to release it"
}

// forHow returns e.g. " for 3m"; empty if the time is unknown.
func forHow(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + Age(since, now)
}

// eventsAbout returns the matching events about an object, oldest first.
func eventsAbout(kind string, obj metav1.Object, events []corev1.Event, interests func(*corev1.Event) bool) []Event {
	var all []Event
	for i := range events {
		e, about := &events[i], events[i].InvolvedObject
		sameName := about.Name == obj.GetName() && (obj.GetNamespace() == "" || about.Namespace == obj.GetNamespace())
		sameUID := about.UID == "" || about.UID == obj.GetUID() || kind == "Node" && string(about.UID) == obj.GetName()
		if about.Kind == kind && sameName && sameUID && interests(e) {
			all = append(all, Event{At: lastOf(e), Type: e.Type, Reason: e.Reason, Note: e.Message, Count: countOf(e)})
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all
}

// reportedBy reports whether one of the controllers wrote the event, in either form of the API.
func reportedBy(e *corev1.Event, controllers ...string) bool {
	return slices.Contains(controllers, e.ReportingController) || slices.Contains(controllers, e.Source.Component)
}

// lastOf returns when an event last happened, in either form of the API.
func lastOf(e *corev1.Event) time.Time {
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

func countOf(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}

// Age formats a duration as kubectl does: 40s, 3m20s, 5h10m, 12d.
func Age(since, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(since))) }
