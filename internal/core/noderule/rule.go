package noderule

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Rule is a NodeReadinessRule, compiled: its selector is parsed and its standing among the
// other rules is settled. It is shared and never changed.
type Rule struct {
	Name         string
	UID          types.UID
	Generation   int64
	Created      time.Time
	Requirements []v1alpha1.ConditionRequirement
	AnyOf        bool
	Bootstrap    bool
	Taint        corev1.Taint
	DryRun       bool
	Deleting     bool

	// MinReady is how long the requirements must have been met before a release.
	MinReady time.Duration
	// MaxUnavailable is how many nodes in use may be taken away at one time; nil: all.
	MaxUnavailable *intstr.IntOrString
	// Boot says that a bootstrap-only rule is done with a boot of a node, not with the node.
	Boot bool
	// Deadline is how long a node may be held before it is stuck; zero: for ever.
	Deadline time.Duration
	// ReleaseStuck says that a node that is stuck is released.
	ReleaseStuck bool
	// DependsOn are the names of the rules that must release a node first.
	DependsOn []string
	// AddsTolerations says that the API server lets DaemonSets that the rule names tolerate its
	// taint, when they are next changed.
	AddsTolerations bool

	// Withdrawn says that nobody enforces the rule any more, though it stays: see
	// Rulebook.Withdrawn.
	Withdrawn bool

	// TakenOver is when Readygate first saw the rule; zero means that it has not said so yet.
	TakenOver time.Time

	// DryRunSince is when Readygate first saw that the rule only previews; zero if it does not,
	// or nobody has said so yet.
	DryRunSince time.Time

	// Inherited says that another controller of this API enforced the rule, and somebody
	// deleted it, before Readygate first saw it: what it put on nodes has no record.
	Inherited bool

	// Problem is why the rule does nothing, nil if it takes part.
	Problem *Problem

	// Unordered is why the rule waits for none of those that it depends on, in words; empty if it
	// does.
	Unordered string

	// Rival is, for a rule that only previews, the rule that it would be in conflict with.
	Rival *Rule

	edition      edition
	selector     labels.Selector
	requirements labels.Requirements
	reach        reach

	// after are the rules that this one depends on, directly or not.
	after []*Rule
	// timed says that the rule looks at clocks, heartbeats or boots.
	timed bool

	// Keys of the rule's annotations on a node: its record, its completion and the older form
	// of that, and what it remembers of a node that it does not hold.
	holdKey, completedKey, olderCompletedKey, memoryKey string
	// recordTaint is how a record names the rule's taint.
	recordTaint string
}

// Problem is why a rule is not accepted: something only a user can mend.
type Problem struct {
	// Reason is one of the reasons of the condition Accepted.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

// ID is the identity of the rule's taint.
func (r *Rule) ID() TaintID { return idOf(&r.Taint) }

// Active says whether the rule makes demands on nodes. An inactive rule is being deleted,
// withdrawn, not accepted, or only previews.
func (r *Rule) Active() bool { return r.speaks() && !r.DryRun }

// frozen says that what the rule owns on nodes stays as it is.
func (r *Rule) frozen() bool { return r.speaks() && r.DryRun }

// speaks says whether the rule has an answer for nodes at all.
func (r *Rule) speaks() bool { return !r.Deleting && !r.Withdrawn && r.Problem == nil }

// Ages says whether what is reported can become too old for the rule.
func (r *Rule) Ages() bool {
	return slices.ContainsFunc(r.Requirements, func(c v1alpha1.ConditionRequirement) bool { return c.MaxAge != nil })
}

// Selects says whether the rule's selector matches the node.
func (r *Rule) Selects(node *Node) bool { return r.selector.Matches(node.Labels) }

// CanSelect says whether the rule can select a node that has all of these labels.
func (r *Rule) CanSelect(required map[string]string) bool {
	requirements, _ := labels.SelectorFromSet(required).Requirements()
	return r.reach.overlaps(reachOf(requirements))
}

// Selector is what the rule requires of a node's labels; all of it must hold.
func (r *Rule) Selector() labels.Requirements { return r.requirements }

// CompletedKeys are the annotations that say that a bootstrap-only rule is done with a node:
// the one that is written, and the older form, which counts only on nodes that are older than
// TakenOver.
func (r *Rule) CompletedKeys() (key, older string) { return r.completedKey, r.olderCompletedKey }

// forgives says that the rule remembers nodes that it released because they were stuck, until
// their requirements are met: a bootstrap-only rule is done with them anyway.
func (r *Rule) forgives() bool { return r.Deadline > 0 && r.ReleaseStuck && !r.Bootstrap }

// remembers says that the rule remembers something of nodes that it does not hold.
func (r *Rule) remembers() bool { return r.MaxUnavailable != nil || r.forgives() }

// isKey says whether the annotation of this key speaks of the rule.
func (r *Rule) isKey(key string) bool {
	return key == r.holdKey || key == r.completedKey || key == r.olderCompletedKey || key == r.memoryKey
}

// compile makes a rule of the object. A rule that cannot be enforced gets a Problem and
// selects nothing.
func compile(obj *v1alpha1.NodeReadinessRule) *Rule {
	rule := &Rule{
		Name:         obj.Name,
		UID:          obj.UID,
		Generation:   obj.Generation,
		Created:      obj.CreationTimestamp.Time,
		Requirements: obj.Spec.Conditions,
		AnyOf:        obj.Spec.ConditionPolicy == v1alpha1.ConditionPolicyAnyOf,
		Bootstrap:    bootstrap(obj),
		Taint:        corev1.Taint{Key: obj.Spec.Taint.Key, Value: obj.Spec.Taint.Value, Effect: obj.Spec.Taint.Effect},
		TakenOver:    takenOver(obj),
		DryRun:       obj.Spec.DryRun,
		DryRunSince:  dryRunSince(obj),
		Deleting:     !obj.DeletionTimestamp.IsZero(),
		MinReady:     time.Duration(obj.Spec.MinReadySeconds) * time.Second,
		Boot:         bootstrap(obj) && obj.Spec.BootstrapScope == v1alpha1.BootstrapScopeBoot,
		Deadline:     time.Duration(ptr.Deref(obj.Spec.ProgressDeadlineSeconds, 0)) * time.Second,
		ReleaseStuck: obj.Spec.OnDeadline == v1alpha1.DeadlineRelease,
		DependsOn:    obj.Spec.DependsOn,

		AddsTolerations: obj.Spec.Tolerations != nil,

		edition:  editionOf(obj),
		selector: labels.Nothing(),

		holdKey:           v1alpha1.HoldPrefix + string(obj.UID),
		completedKey:      v1alpha1.CompletedPrefix + string(obj.UID),
		olderCompletedKey: v1alpha1.CompletedPrefix + obj.Name,
		memoryKey:         v1alpha1.MemoryPrefix + string(obj.UID),
	}
	rule.recordTaint = `"taint":"` + rule.ID().String() + `"`
	if !rule.Bootstrap {
		rule.MaxUnavailable = obj.Spec.MaxUnavailable
	}
	rule.timed = rule.MinReady > 0 || rule.Boot || rule.Deadline > 0 ||
		rule.Ages()
	rule.Inherited = rule.Deleting && !rule.DryRun && rule.TakenOver.IsZero() && slices.Contains(obj.Finalizers, v1alpha1.Finalizer)
	selector, errs := validate(&obj.Spec)
	if len(errs) > 0 {
		rule.Problem = &Problem{Reason: v1alpha1.ReasonInvalid, Message: errs.ToAggregate().Error()}
		return rule
	}
	rule.selector = selector
	rule.requirements, _ = selector.Requirements()
	rule.reach = reachOf(rule.requirements)
	return rule
}

// IsOf says whether compiling the object would give the same answers as this rule, its
// standing among other rules aside.
func (r *Rule) IsOf(obj *v1alpha1.NodeReadinessRule) bool { return r.edition.equal(editionOf(obj)) }

// SameRule says whether two states of an object compile to the same rule.
func SameRule(a, b *v1alpha1.NodeReadinessRule) bool { return editionOf(a).equal(editionOf(b)) }

// older orders rules by creation time, then UID: of two rules in conflict the first wins.
func older(a, b *Rule) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}
