package view

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Book holds all NodeReadinessRules, compiled.
type Book struct {
	compiled *noderule.Rulebook
	objects  map[types.UID]*v1alpha1.NodeReadinessRule
}

// NewBook compiles the rules.
func NewBook(rules []*v1alpha1.NodeReadinessRule) *Book {
	b := &Book{compiled: noderule.NewRulebook(rules), objects: make(map[types.UID]*v1alpha1.NodeReadinessRule, len(rules))}
	for _, rule := range rules {
		b.objects[rule.UID] = rule
	}
	return b
}

// Rule is the row of one rule.
type Rule struct {
	Name    string    `json:"name"`
	UID     types.UID `json:"uid"`
	Created time.Time `json:"created"`

	Taint        string                   `json:"taint"`
	Mode         v1alpha1.EnforcementMode `json:"mode"`
	AnyOf        bool                     `json:"anyOf,omitempty"`
	Requirements []string                 `json:"requirements"`
	Selector     string                   `json:"selector"`

	// Standing is Enforced, or the reason why the rule is not enforced (Progressing, WriteRefused,
	// Limited, DryRun, Conflict, Invalid, Deleting, WaitingForLease, Unobserved).
	Standing string `json:"standing"`
	// Message has the details and the next step.
	Message string `json:"message,omitempty"`

	// AtCreation and AtCreationMessage are the reason and message of the condition TaintedAtCreation.
	AtCreation        string `json:"atCreation,omitempty"`
	AtCreationMessage string `json:"atCreationMessage,omitempty"`
	// Blocked names the DaemonSets that must run before the rule can release nodes, and that cannot start.
	Blocked string `json:"blocked,omitempty"`
	// Others is the message of the condition SoleController while another controller may enforce the
	// rule as well; empty if none does.
	Others string `json:"others,omitempty"`

	// Count counts the nodes that were passed.
	Count Count `json:"count"`
	// Refused are the nodes for which the API server rejects writes, as listed in the rule's status.
	Refused []Refusal `json:"refused,omitempty"`
}

// Unobserved is the standing of a rule that no manager has observed.
const Unobserved = "Unobserved"

// Refusal is a node that cannot be written, with the API server's message.
type Refusal struct {
	Node    string `json:"node"`
	Message string `json:"message"`
}

// Count counts the nodes of one rule. Rows are added and removed, so that the cost of one changed node does not
// depend on the number of nodes.
type Count struct {
	Selected  int `json:"selected"`
	Held      int `json:"held"`
	Released  int `json:"released"`
	Unsettled int `json:"unsettled"`
	// Stuck counts nodes that are held for longer than the rule's deadline, and Limited nodes that are released
	// only because of maxUnavailable.
	Stuck   int `json:"stuck,omitempty"`
	Limited int `json:"limited,omitempty"`
	// Blocked counts held nodes by unmet requirement.
	Blocked map[string]int `json:"blocked,omitempty"`
}

// Tally counts the nodes of each rule, by the rule's name.
type Tally map[string]*Count

// Add adds the row of a node.
func (t Tally) Add(n Node) { t.count(n, 1) }

// Remove removes the row of a node.
func (t Tally) Remove(n Node) { t.count(n, -1) }

func (t Tally) count(n Node, by int) {
	for _, s := range n.Rules {
		c := t[s.Rule]
		if c == nil {
			c = &Count{Blocked: map[string]int{}}
			t[s.Rule] = c
		}
		if s.State != noderule.NotSelected {
			c.Selected += by
		}
		switch {
		case s.Held:
			c.Held += by
		case s.State != noderule.NotSelected:
			c.Released += by
		}
		if !s.Settled && !s.Preview {
			c.Unsettled += by
		}
		if s.Preview && !s.Held {
			continue // a dry run holds no node
		}
		if s.Stuck {
			c.Stuck += by
		}
		if s.Cause == noderule.CauseLimit {
			c.Limited += by
		}
		for _, m := range s.Missing {
			if s.State != noderule.Held {
				break
			}
			if c.Blocked[m.Type] += by; c.Blocked[m.Type] == 0 {
				delete(c.Blocked, m.Type)
			}
		}
	}
}

// Rules returns the rows of all rules, oldest first.
func (b *Book) Rules(tally Tally) []Rule {
	rows := make([]Rule, 0, len(b.compiled.Rules()))
	for _, rule := range b.compiled.Rules() {
		row := b.rule(rule)
		if count := tally[rule.Name]; count != nil {
			row.Count = *count
			row.Count.Blocked = maps.Clone(count.Blocked)
		}
		if row.Count.Unsettled > 0 && row.Standing == v1alpha1.ReasonEnforced { // the status is behind
			row.Standing = v1alpha1.ReasonProgressing
			row.Message = fmt.Sprintf("%d selected nodes are not updated yet; if this persists, check that readygate-manager runs", row.Count.Unsettled)
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *Book) rule(rule *noderule.Rule) Rule {
	obj := b.objects[rule.UID]
	row := Rule{
		Name: rule.Name, UID: rule.UID, Created: rule.Created,
		Taint:    rule.Taint.ToString(),
		Mode:     obj.Spec.EnforcementMode,
		AnyOf:    rule.AnyOf,
		Selector: labels.NewSelector().Add(rule.Selector()...).String(),
	}
	for _, requirement := range rule.Requirements {
		row.Requirements = append(row.Requirements, requirement.Type+"="+string(requirement.RequiredStatus))
	}
	row.Standing, row.Message = standingOfRule(rule, obj)
	if taintNewNodes := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionTaintedAtCreation); taintNewNodes != nil {
		row.AtCreation, row.AtCreationMessage = taintNewNodes.Reason, taintNewNodes.Message
	}
	row.Blocked = blocked(obj)
	row.Others = soleController(obj.Status.Conditions, v1alpha1.ReasonOtherLease)
	for _, failed := range obj.Status.FailedNodes {
		row.Refused = append(row.Refused, Refusal{Node: failed.NodeName, Message: failed.Message})
	}
	return row
}

// blocked returns the message about DaemonSets that the rule's own taint keeps away; empty if there are none.
func blocked(obj *v1alpha1.NodeReadinessRule) string {
	if run := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionReportersTolerated); run != nil && run.Status == metav1.ConditionFalse {
		return run.Message
	}
	return ""
}

// soleController returns the message of the condition SoleController if it has this reason, else empty.
func soleController(conditions []metav1.Condition, reason string) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionSoleController); c != nil && c.Reason == reason {
		return c.Message
	}
	return ""
}

// standingOfRule returns the standing that follows from the rules themselves, else the one from the rule's status.
func standingOfRule(rule *noderule.Rule, obj *v1alpha1.NodeReadinessRule) (word, message string) {
	enforced := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionEnforced)
	said := func(reason string) string {
		if enforced != nil && enforced.Reason == reason {
			return enforced.Message
		}
		return ""
	}
	switch {
	case rule.Deleting:
		if text := said(v1alpha1.ReasonDeleting); text != "" {
			return v1alpha1.ReasonDeleting, text
		}
		return v1alpha1.ReasonDeleting, "its taints and annotations are removed from nodes first; if this persists, check that readygate-manager runs"
	case rule.Problem != nil:
		return rule.Problem.Reason, rule.Problem.Message
	}
	if waits := soleController(obj.Status.Conditions, v1alpha1.ReasonWaitingForLease); waits != "" {
		return v1alpha1.ReasonWaitingForLease, waits
	}
	switch {
	case enforced == nil || obj.Status.ObservedGeneration != obj.Generation:
		return Unobserved, "no manager has observed this rule; check that readygate-manager runs"
	case rule.DryRun:
		return v1alpha1.ReasonDryRun, ptr.Deref(obj.Status.DryRunResults, v1alpha1.DryRunResults{}).Summary
	case enforced.Status == metav1.ConditionTrue:
		return v1alpha1.ReasonEnforced, enforced.Message
	}
	return enforced.Reason, enforced.Message
}
