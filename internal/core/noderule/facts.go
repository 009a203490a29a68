package noderule

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// facts are what a node contains about one rule. Evaluation and planning read the facts instead of the annotations, so
// that each record is decoded once.
type facts struct {
	rule *Rule
	node *Node

	// completion is the value of the completion record. hasOlderCompletion means that the node has a completion
	// record of the older form, which ends in the name of the rule.
	completion                        string
	hasCompletion, hasOlderCompletion bool

	selected bool
	// taint and record are whether the node has the rule's taint and its ownership record.
	taint, record lookup

	// records is nil if the rule needs no record, or the node has none.
	records *records
}

// lookup is the result of a lookup.
type lookup int8

const (
	notLookedUp lookup = iota
	absent
	present
)

func lookupOf(found bool) lookup {
	if found {
		return present
	}
	return absent
}

// records are the decoded annotations of one rule on a node. The record is that of the boot in which the node is now.
type records struct {
	hold   record
	memory memory
}

// noRecords are the records of a node that has none.
var noRecords records

// factsOf returns the facts of a node for one rule.
func factsOf(rule *Rule, node *Node) facts {
	var f facts
	f.decode(rule, node)
	return f
}

// decode sets the facts of a node for one rule. It does not allocate unless there is a record to decode.
func (f *facts) decode(rule *Rule, node *Node) {
	*f = facts{rule: rule, node: node, selected: rule.Selects(node)}
	if rule.Bootstrap {
		f.completion, f.hasCompletion = node.Annotations[rule.completedKey]
		f.hasOlderCompletion = !f.hasCompletion && has(node.Annotations, rule.olderCompletedKey)
	}
	if !rule.timed && !rule.keepsMemory() {
		return
	}
	hold := rule.timed && (f.owned() || rule.Boot && node.BootID != "")
	if memory := rule.keepsMemory() && has(node.Annotations, rule.memoryKey); hold || memory {
		f.records = &records{memory: decodeMemory(rule, node)}
	}
	if hold {
		f.records.hold = f.decodeHold()
	}
}

// hold is the rule's ownership record for the current boot of the node; empty if there is none or the rule is not
// timed.
func (f *facts) hold() *record {
	if f.records == nil {
		return &noRecords.hold
	}
	return &f.records.hold
}

// memory is the rule's memory annotation; empty if there is none.
func (f *facts) memory() memory {
	if f.records != nil {
		return f.records.memory
	}
	return decodeMemory(f.rule, f.node)
}

// hasMemory reports whether the node has the rule's memory annotation.
func (f *facts) hasMemory() bool { return has(f.node.Annotations, f.rule.memoryKey) }

// tainted reports whether the node has the rule's taint.
func (f *facts) tainted() bool {
	if f.taint == notLookedUp {
		f.taint = lookupOf(f.node.Has(f.rule.ID()))
	}
	return f.taint == present
}

// owned reports whether the node has the rule's ownership record.
func (f *facts) owned() bool {
	if f.record == notLookedUp {
		f.record = lookupOf(owns(f.rule, f.node))
	}
	return f.record == present
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
func (f *facts) holding() bool { return f.tainted() && f.owned() }

// inherited reports whether the node has the taint of a rule that was deleted before Readygate first observed it.
// Another controller added the taint, without a record.
func (f *facts) inherited() bool { return f.rule.Inherited && f.selected && f.tainted() }

// carries reports whether the node has anything of the rule.
func (f *facts) carries() bool {
	return f.owned() || f.inherited() || f.hasMemory() || has(f.node.Annotations, f.rule.completedKey)
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
	return f.node.Created.Before(f.rule.Created) || f.memory().InUse != "" ||
		f.node.ready() && !f.owned() && !f.tainted()
}

// takes reports whether holding the node removes a node in use, for a rule with maxUnavailable.
func (f *facts) takes() bool { return f.rule.MaxUnavailable != nil && !f.tainted() && f.inUse() }

// createdLate reports whether the admission policy added the rule's taint when the node was created, although the
// rule was in dry run by then: a change of a rule takes time to reach all API servers.
func (f *facts) createdLate() bool {
	return !f.rule.DryRunSince.IsZero() && !f.node.Created.Before(f.rule.DryRunSince) &&
		f.owned() && originIn(f.node.Annotations[f.rule.holdKey]) == OriginCreated
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
		if rec.Origin == OriginCreated { // for which the time is that of the node's creation
			rec.Origin = OriginAdded
		}
	}
	rec.Boot, rec.Armed = node.BootID, false
	return rec
}

// InUse reports whether the node counts as in use for a rule with maxUnavailable.
func InUse(rule *Rule, node *Node) bool {
	f := factsOf(rule, node)
	return f.inUse()
}

// Carries reports whether the node has anything that the rule added.
func Carries(rule *Rule, node *Node) bool {
	f := factsOf(rule, node)
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
