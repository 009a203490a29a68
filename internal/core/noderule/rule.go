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

// Rule is a compiled NodeReadinessRule: its selector is parsed, and conflicts with other rules are resolved. It is
// shared and immutable.
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
	// MaxUnavailable is how many nodes in use the rule may hold at one time; nil: all.
	MaxUnavailable *intstr.IntOrString
	// Boot means that a bootstrap-only rule completes for one boot of a node, not for the node.
	Boot bool
	// Deadline is how long a node may be held before it is stuck; zero: forever.
	Deadline time.Duration
	// ReleaseStuck means that a stuck node is released.
	ReleaseStuck bool
	// DependsOn are the names of the rules that must release a node first.
	DependsOn []string
	// AddsTolerations means that the admission policy adds the toleration to DaemonSets that the rule names, when they
	// are next changed.
	AddsTolerations bool

	// Withdrawn means that the rule stays and is not enforced anymore: see Rulebook.Withdrawn.
	Withdrawn bool

	// TakenOver is when Readygate first observed the rule; zero means that its status does not have the time yet.
	TakenOver time.Time

	// DryRunSince is when Readygate first observed that the rule is in dry run; zero if it is not, or its status does not
	// have the time yet.
	DryRunSince time.Time

	// Inherited means that another controller of this API enforced the rule, and that it was deleted before Readygate
	// first observed it: its taints on nodes have no record.
	Inherited bool

	// Problem is why the rule has no effect; nil if it has.
	Problem *Problem

	// Unordered explains why the rule ignores dependsOn; empty if it does not.
	Unordered string

	// Rival is, for a rule in dry run, the rule that it would conflict with.
	Rival *Rule

	edition      edition
	selector     labels.Selector
	requirements labels.Requirements
	reach        reach

	// after are the rules that this one depends on, directly or not.
	after []*Rule
	// timed means that the rule depends on times, heartbeats or boots.
	timed bool

	// Keys of the rule's annotations on a node: ownership record, completion record and its older form, and memory.
	holdKey, completedKey, olderCompletedKey, memoryKey string
	// recordTaint is the rule's taint as a record contains it.
	recordTaint string
}

// Problem is why a rule is not accepted. Only a user can fix it.
type Problem struct {
	// Reason is one of the reasons of the condition Accepted.
	Reason string
	// Message is what is wrong and the next step.
	Message string
}

// ID is the identity of the rule's taint.
func (r *Rule) ID() TaintID { return idOf(&r.Taint) }

// Active reports whether the rule is enforced. An inactive rule is being deleted, withdrawn, not accepted or in dry run.
func (r *Rule) Active() bool { return r.hasVerdicts() && !r.DryRun }

// dryRun reports whether what the rule owns on nodes must not change.
func (r *Rule) dryRun() bool { return r.hasVerdicts() && r.DryRun }

// hasVerdicts reports whether the rule can select nodes at all.
func (r *Rule) hasVerdicts() bool { return !r.Deleting && !r.Withdrawn && r.Problem == nil }

// Ages reports whether a heartbeat can become too old for the rule.
func (r *Rule) Ages() bool {
	return slices.ContainsFunc(r.Requirements, func(c v1alpha1.ConditionRequirement) bool { return c.MaxAge != nil })
}

// Selects reports whether the rule's selector matches the node.
func (r *Rule) Selects(node *Node) bool { return r.selector.Matches(node.Labels) }

// CanSelect reports whether the rule can select a node that has all of these labels.
func (r *Rule) CanSelect(required map[string]string) bool {
	requirements, _ := labels.SelectorFromSet(required).Requirements()
	return r.reach.overlaps(reachOf(requirements))
}

// Selector is what the rule requires of a node's labels; all of it must match.
func (r *Rule) Selector() labels.Requirements { return r.requirements }

// CompletedKeys are the keys of completion records: the one that is written, and the older form, which counts only on
// nodes that are older than TakenOver.
func (r *Rule) CompletedKeys() (key, older string) { return r.completedKey, r.olderCompletedKey }

// recordsExpiry reports whether the rule records on a node that its deadline released it, until the requirements are
// met. A bootstrap-only rule writes a completion record instead.
func (r *Rule) recordsExpiry() bool { return r.Deadline > 0 && r.ReleaseStuck && !r.Bootstrap }

// keepsMemory reports whether the rule writes an annotation on nodes that it does not hold.
func (r *Rule) keepsMemory() bool { return r.MaxUnavailable != nil || r.recordsExpiry() }

// isKey reports whether the annotation of this key is one of the rule.
func (r *Rule) isKey(key string) bool {
	return key == r.holdKey || key == r.completedKey || key == r.olderCompletedKey || key == r.memoryKey
}

// compile compiles a rule. One that cannot be enforced has a Problem and selects nothing.
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

// IsOf reports whether the object compiles to this rule, conflicts with other rules aside.
func (r *Rule) IsOf(obj *v1alpha1.NodeReadinessRule) bool { return r.edition.equal(editionOf(obj)) }

// SameRule reports whether two states of an object compile to the same rule.
func SameRule(a, b *v1alpha1.NodeReadinessRule) bool { return editionOf(a).equal(editionOf(b)) }

// older orders rules by creation time, then UID: of two rules in conflict the first wins.
func older(a, b *Rule) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// edition identifies the rule that an object compiles to. It is cheap to compute: most changes of rules change only their
// status, and do not change the edition.
type edition struct {
	uid types.UID
	// generation identifies the spec.
	generation             int64
	deleting               bool
	takenOver, dryRunSince time.Time
}

func editionOf(obj *v1alpha1.NodeReadinessRule) edition {
	e := edition{
		uid:         obj.UID,
		generation:  obj.Generation,
		deleting:    !obj.DeletionTimestamp.IsZero(),
		dryRunSince: dryRunSince(obj),
	}
	if bootstrap(obj) { // it matters for completion records only
		e.takenOver = takenOver(obj)
	}
	return e
}

func (e edition) equal(other edition) bool {
	return e.uid == other.uid && e.generation == other.generation && e.deleting == other.deleting &&
		e.takenOver.Equal(other.takenOver) && e.dryRunSince.Equal(other.dryRunSince)
}

func bootstrap(obj *v1alpha1.NodeReadinessRule) bool {
	return obj.Spec.EnforcementMode == v1alpha1.EnforcementModeBootstrapOnly
}

func takenOver(obj *v1alpha1.NodeReadinessRule) time.Time {
	if obj.Status.TakenOverAt == nil {
		return time.Time{}
	}
	return obj.Status.TakenOverAt.Time
}

func dryRunSince(obj *v1alpha1.NodeReadinessRule) time.Time {
	if !obj.Spec.DryRun || obj.Status.DryRunSince == nil {
		return time.Time{}
	}
	return obj.Status.DryRunSince.Time
}
