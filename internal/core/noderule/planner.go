package noderule

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// planner builds one plan. Most nodes need no change, so it copies and sorts nothing before there is a change.
type planner struct {
	node  *Node
	rules []*Rule
	// evaluation has the facts and verdicts of all rules, in their order; nil: they are derived rule by rule.
	evaluation *Evaluation
	// listed are the taints of all rules, also of rules that do not exist anymore.
	listed RuleTaints
	now    time.Time
	plan   Plan
}

// decision returns the facts of a rule and its outcome. Without an evaluation it sets own to the facts, and returns it.
func (p *planner) decision(i int, own *facts) (*facts, outcome) {
	if e := p.evaluation; e != nil {
		return &e.Verdicts[i].facts, e.Verdicts[i].outcome()
	}
	own.decode(p.rules[i], p.node)
	return own, own.evaluate(p.now)
}

func (p *planner) run() {
	p.plan.Taints = p.node.Taints
	var own facts
	for i := range p.rules {
		f, o := p.decision(i, &own)
		p.apply(f, &o)
	}
	p.removeOrphans()
}

// claim is a rule's claim to a taint: of a rule that exists, or of one that left a record.
type claim struct {
	rule   string
	uid    types.UID
	taint  TaintID
	record string // key of the annotation
}

func claimOf(rule *Rule) claim {
	return claim{rule: rule.Name, uid: rule.UID, taint: rule.ID(), record: rule.holdKey}
}

func (p *planner) apply(f *facts, o *outcome) {
	rule := f.rule
	switch {
	case rule.dryRun() && f.createdLate():
		p.removeOwned(f)
	case rule.dryRun():
	case !rule.Active() || o.state == NotSelected:
		p.disengage(f)
	case o.completed:
		p.disengage(f)
		p.recordBoot(f)
	case o.cause == CauseDependency && o.state != Held: // unchanged
	case o.state == Held:
		p.hold(f, o)
	case o.state == Released:
		p.release(f, o)
	}
}

func (p *planner) hold(f *facts, o *outcome) {
	rule := f.rule
	switch {
	case !contains(p.plan.Taints, rule.ID()):
		p.plan.Taints = append(p.copyTaints(), rule.Taint)
		p.change(Added, claimOf(rule))
		p.writeRecord(f, o, newRecord(rule, OriginAdded, p.now))
	case !f.owned():
		p.change(Adopted, claimOf(rule))
		p.writeRecord(f, o, newRecord(rule, OriginAdopted, p.now))
	case rule.timed:
		p.writeRecord(f, o, *f.hold())
	}
}

// writeRecord writes the ownership record of a node that the rule holds.
func (p *planner) writeRecord(f *facts, o *outcome, rec record) {
	if f.rule.timed {
		p.updateRecord(&rec, f, o)
	}
	p.set(f.rule.holdKey, rec.String(), claimOf(f.rule))
	if f.rule.MaxUnavailable != nil || f.hasMemory() {
		p.writeMemory(f, o, f.inUse())
	}
}

// updateRecord updates what a record contains about time.
func (p *planner) updateRecord(rec *record, f *facts, o *outcome) {
	rule := f.rule
	if rule.Boot {
		known := f.hold()
		rec.Boot, rec.Armed, rec.Beats = known.Boot, known.Armed, known.Beats
	}
	if rule.Boot && !p.node.ready() && f.completed() {
		arm(rec, p.node)
		p.recordBoot(f)
	}
	rec.Ahead = f.hold().Ahead // also in a new record: such a heartbeat never counts
	rec.Ahead = futureBeats(rule, p.node, rec, p.now)
	if o.cause == CauseDependency { // times of this rule do not run
		rec.Met, rec.Waits = "", rule.Deadline > 0
		return
	}
	switch {
	case o.cause != CauseMinReady:
		rec.Met = ""
	case rec.Met == "":
		rec.Met = timeOf(p.now)
	}
	if rec.Waits || (rule.Deadline > 0 || rule.Boot) && rec.since(p.node).IsZero() {
		rec.Waits, rec.Since, rec.Stuck = false, p.now.UTC().Format(time.RFC3339), ""
	}
	if o.stuck && rec.Stuck == "" {
		rec.Stuck = timeOf(p.now)
		p.change(Stuck, claimOf(rule))
	}
}

func (p *planner) release(f *facts, o *outcome) {
	rule := f.rule
	if o.cause != CauseLimit {
		p.removeOwned(f)
	}
	if o.stuck {
		p.change(Expired, claimOf(rule))
	}
	if rule.Bootstrap {
		key, value := completion(rule, p.node, o.cause == CauseDeadline)
		p.setAnnotation(key, value)
		p.change(Completed, claimOf(rule))
	}
	if rule.keepsMemory() || f.hasMemory() {
		p.writeMemory(f, o, f.owned() || f.tainted() || f.inUse())
	}
}

// writeMemory records two facts for later verdicts: that the node is in use, unless it is older than the rule, and that the
// deadline released it.
func (p *planner) writeMemory(f *facts, o *outcome, used bool) {
	rule, m := f.rule, f.memory()
	m.Rule = rule.Name
	if rule.MaxUnavailable != nil && used && m.InUse == "" && !p.node.Created.Before(rule.Created) {
		m.InUse = timeOf(p.now)
	}
	switch {
	case o.cause != CauseDeadline:
		m.Expired = ""
	case m.Expired == "":
		m.Expired = timeOf(p.now)
	}
	if value := m.String(); value != "" {
		p.set(rule.memoryKey, value, claimOf(rule))
	} else {
		p.remove(rule.memoryKey, claimOf(rule))
	}
}

// recordBoot adds the boot to a completion record that was written before the rule had bootstrapScope Boot, in any
// form, and removes it when the rule no longer has it: it would be outdated when the rule has it again.
func (p *planner) recordBoot(f *facts) {
	rule := f.rule
	if !f.hasCompletion && !rule.Boot || rule.Boot && p.node.BootID == "" {
		return
	}
	if _, recorded := bootOf(f.completion); recorded != rule.Boot {
		key, value := completion(rule, p.node, releasedByDeadline(f.completion))
		p.set(key, value, claimOf(rule))
	}
}

// disengage removes what a rule added to a node that it does not select, or that has completed. A rule that is being
// deleted also removes its other records.
func (p *planner) disengage(f *facts) {
	rule := f.rule
	if f.owned() || f.inherited() {
		p.removeOwned(f)
	}
	if rule.Deleting {
		p.remove(rule.completedKey, claimOf(rule))
	}
	if rule.Deleting || rule.Withdrawn {
		p.remove(rule.memoryKey, claimOf(rule))
	}
}

// removeOrphans removes what rules left that do not exist anymore. An ownership record without its rule and taint in
// the list was not written by Readygate: it stays, and so does the taint.
func (p *planner) removeOrphans() {
	var orphans []string
	for key, value := range p.node.Annotations {
		if p.unlisted(key, value) {
			p.plan.Unlisted = append(p.plan.Unlisted, key)
		} else if _, ok := p.orphanOf(key, value); ok {
			orphans = append(orphans, key)
		}
	}
	slices.Sort(p.plan.Unlisted)
	slices.Sort(orphans)
	for _, key := range orphans {
		uid, _ := p.orphanOf(key, p.node.Annotations[key])
		p.plan.Swept = append(p.plan.Swept, uid)
		if _, held := ownerOf(key); held {
			c := claimIn(key, uid, p.node.Annotations[key])
			p.removeTaint(c)
			p.remove(c.record, c)
		} else {
			p.remove(key, claim{rule: unknownRule, uid: uid})
		}
	}
	slices.Sort(p.plan.Remove)
}

// unlisted reports whether the annotation is an ownership record that no rule can have written: its rule exists and has
// another taint, or the list does not have its rule with its taint.
func (p *planner) unlisted(key, value string) bool {
	uid, ok := ownerOf(key)
	if !ok {
		return false
	}
	if i := slices.IndexFunc(p.rules, func(r *Rule) bool { return r.UID == uid }); i >= 0 {
		_, replaced := p.plan.Set[key]
		return !owns(p.rules[i], p.node) && !replaced && !slices.Contains(p.plan.Remove, key)
	}
	taint, known := p.listed[uid]
	return !known || claimIn(key, uid, value).taint != taint
}

// orphanOf returns the UID of the rule that wrote the annotation, if the rule does not exist anymore. A completion
// record of the older form ends in the name of a rule, which may have the form of a UID.
func (p *planner) orphanOf(key, value string) (types.UID, bool) {
	if uid, ok := ownerOf(key); ok {
		return uid, !p.exists(uid)
	}
	if uid, ok := memoryOwner(key); ok {
		return uid, !p.exists(uid)
	}
	id, ok := strings.CutPrefix(key, v1alpha1.CompletedPrefix)
	if !ok || slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.UID == types.UID(id) || r.Name == id }) {
		return "", false
	}
	return completionOf(key, value)
}

func (p *planner) exists(uid types.UID) bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.UID == uid })
}

// required reports whether some rule holds the node with the taint. It is called only for a taint that is removed.
func (p *planner) required(id TaintID) bool {
	for i, rule := range p.rules {
		if rule.ID() != id || !rule.Active() {
			continue
		}
		var own facts
		if _, o := p.decision(i, &own); o.state == Held {
			return true
		}
	}
	return false
}

// removeOwned removes the taint of a rule and its record. A record under the rule's key that names another taint is not
// the rule's, and stays.
func (p *planner) removeOwned(f *facts) {
	c := claimOf(f.rule)
	p.removeTaint(c)
	if f.owned() {
		p.remove(c.record, c)
	}
}

// removeTaint removes the taint, unless some rule requires it or no rule may manage it: a rule that was stored under
// another CRD, or a forged record, can name any taint.
func (p *planner) removeTaint(c claim) {
	if !contains(p.plan.Taints, c.taint) || !c.taint.managed() || p.required(c.taint) {
		return
	}
	p.plan.Taints = slices.DeleteFunc(p.copyTaints(), func(t corev1.Taint) bool { return idOf(&t) == c.taint })
	p.change(Removed, c)
}

// copyTaints returns the list of the plan for changes. Until the first change it is the node's.
func (p *planner) copyTaints() []corev1.Taint {
	if !p.plan.TaintsChanged {
		p.plan.Taints, p.plan.TaintsChanged = slices.Clone(p.plan.Taints), true
	}
	return p.plan.Taints
}

// remove deletes an annotation, if it exists. Every rule that the plan serves has a change, at least this one.
func (p *planner) remove(key string, c claim) {
	if !has(p.node.Annotations, key) {
		return
	}
	p.plan.Remove = append(p.plan.Remove, key)
	if !p.serves(c.uid) {
		p.change(Forgotten, c)
	}
}

// set writes an annotation, if its value differs.
func (p *planner) set(key, value string, c claim) {
	if p.node.Annotations[key] == value {
		return
	}
	p.setAnnotation(key, value)
	if !p.serves(c.uid) {
		p.change(Noted, c)
	}
}

// serves reports whether the plan has a change for the rule.
func (p *planner) serves(uid types.UID) bool {
	return slices.ContainsFunc(p.plan.Changes, func(change Change) bool { return change.UID == uid })
}

func (p *planner) setAnnotation(key, value string) {
	if p.plan.Set == nil {
		p.plan.Set = map[string]string{}
	}
	p.plan.Set[key] = value
}

func (p *planner) change(kind ChangeKind, c claim) {
	p.plan.Changes = append(p.plan.Changes, Change{Kind: kind, Rule: c.rule, UID: c.uid, Taint: c.taint})
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
