package noderule

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// facts are what a node contains about one rule. They are decoded once; evaluation and planning read them
// instead of the annotations of the node.
type facts struct {
	rule *Rule
	node *Node

	selected bool
	// tainted means that the node has the rule's taint, and owned that it has the rule's ownership record.
	tainted, owned bool
	// completion is the value of the completion record. hasOlderCompletion means that the node has a completion
	// record of the older form, which ends in the name of the rule.
	completion                        string
	hasCompletion, hasOlderCompletion bool
	hasMemory                         bool

	// records is nil if the rule needs no record, or the node has none.
	records *records
}

// records are the decoded annotations of one rule on a node. The record is that of the boot in which the node is now.
type records struct {
	hold   record
	memory memory
}

// noRecords are the records of a node that has none.
var noRecords records

// decode returns the facts of a node for one rule. It does not allocate unless there is a record to decode.
func decode(rule *Rule, node *Node) facts {
	f := facts{rule: rule, node: node, selected: rule.Selects(node), tainted: node.Has(rule.ID()), owned: owns(rule, node)}
	if rule.Bootstrap || rule.Deleting {
		f.completion, f.hasCompletion = node.Annotations[rule.completedKey]
		f.hasOlderCompletion = has(node.Annotations, rule.olderCompletedKey)
	}
	f.hasMemory = has(node.Annotations, rule.memoryKey)
	if rule.timed && (has(node.Annotations, rule.holdKey) || rule.Boot && node.BootID != "") || f.hasMemory {
		f.records = &records{memory: decodeMemory(rule, node)}
		if rule.timed {
			f.records.hold = f.decodeHold()
		}
	}
	return f
}

// hold is the rule's ownership record for the current boot of the node; empty if there is none or the rule is not
// timed.
func (f *facts) hold() *record { return &f.decoded().hold }

func (f *facts) decoded() *records {
	if f.records == nil {
		return &noRecords
	}
	return f.records
}

// owns reports whether the node has the rule's ownership record. A record that names another taint is not the
// rule's; one that cannot be decoded is.
func owns(rule *Rule, node *Node) bool {
	value, ok := node.Annotations[rule.holdKey]
	if !ok || strings.Contains(value, rule.recordTaint) {
		return ok
	}
	named := claimIn(rule.holdKey, rule.UID, value).taint
	return named == TaintID{} || named == rule.ID()
}

// holding reports whether the node has the taint because of the rule.
func (f *facts) holding() bool { return f.tainted && f.owned }

// inherited reports whether the node has the taint of a rule that was deleted before Readygate first observed it.
// Another controller added the taint, without a record.
func (f *facts) inherited() bool { return f.rule.Inherited && f.selected && f.tainted }

// carries reports whether the node has anything of the rule.
func (f *facts) carries() bool {
	return f.owned || f.inherited() || f.hasMemory || has(f.node.Annotations, f.rule.completedKey)
}

// completed reports whether the node has a completion record of a bootstrap-only rule that counts. A record of the
// older form counts only on nodes that are older than TakenOver: a node that joins later cannot bring one along.
func (f *facts) completed() bool {
	if f.hasCompletion {
		boot, recorded := bootOf(f.completion)
		return !f.rule.Boot || !recorded || f.node.BootID == "" || boot == f.node.BootID
	}
	return f.hasOlderCompletion && (f.rule.TakenOver.IsZero() || f.node.Created.Before(f.rule.TakenOver))
}

// inUse reports whether the node counts as in use for a rule with maxUnavailable: the rule released it before, it
// is older than the rule, or it accepts pods now.
func (f *facts) inUse() bool {
	return f.node.Created.Before(f.rule.Created) || f.decoded().memory.InUse != "" ||
		f.node.ready() && !f.owned && !f.tainted
}

// takes reports whether holding the node removes a node in use, for a rule with maxUnavailable.
func (f *facts) takes() bool { return f.rule.MaxUnavailable != nil && !f.tainted && f.inUse() }

// createdLate reports whether the admission policy added the rule's taint when the node was created, although the
// rule was in dry run by then: a change of a rule takes time to reach all API servers.
func (f *facts) createdLate() bool {
	return !f.rule.DryRunSince.IsZero() && !f.node.Created.Before(f.rule.DryRunSince) &&
		f.owned && originIn(f.node.Annotations[f.rule.holdKey]) == OriginBorn
}

// decodeHold decodes the ownership record, and adapts it to the current boot of the node.
func (f *facts) decodeHold() record {
	rule, node := f.rule, f.node
	rec := recordIn(node.Annotations[rule.holdKey])
	if !rule.Boot || node.BootID == "" || rec.Boot == node.BootID {
		return rec
	}
	if rec.Boot != "" || has(node.Annotations, rule.completedKey) {
		// Conditions may have been reported before this boot: the node rebooted since the last evaluation. The
		// time since which the node is held begins now.
		rec.Beats, rec.Since, rec.Stuck = beatsOf(rule, node), "", ""
		if rec.Origin == OriginBorn { // for which the time is that of the node's creation
			rec.Origin = OriginAdded
		}
	}
	rec.Boot, rec.Armed = node.BootID, false
	return rec
}

// InUse reports whether the node counts as in use for a rule with maxUnavailable.
func InUse(rule *Rule, node *Node) bool {
	f := decode(rule, node)
	return f.inUse()
}

// Carries reports whether the node has anything that the rule added.
func Carries(rule *Rule, node *Node) bool {
	f := decode(rule, node)
	return f.carries()
}

// HasCompletion reports whether the node has a completion record of the rule, in any form and of any boot.
func HasCompletion(rule *Rule, node *Node) bool {
	return has(node.Annotations, rule.completedKey) || has(node.Annotations, rule.olderCompletedKey)
}

// HoldRecord is what the rule's ownership record on a node contains.
type HoldRecord struct {
	Origin Origin
	// Since is when the hold began; zero if that is not known.
	Since time.Time
}

// HoldOf returns what the rule's ownership record on the node contains, if there is one.
func HoldOf(rule *Rule, node *Node) (HoldRecord, bool) {
	r, ok := readRecord(node.Annotations[rule.holdKey])
	if !ok {
		return HoldRecord{}, false
	}
	return HoldRecord{Origin: r.Origin, Since: r.since(node)}, true
}

// HasRecord reports whether the node has an ownership record of the rule for the taint.
func (n *Node) HasRecord(rule types.UID, taint TaintID) bool {
	key := v1alpha1.HoldPrefix + string(rule)
	value, ok := n.Annotations[key]
	return ok && claimIn(key, rule, value).taint == taint
}
