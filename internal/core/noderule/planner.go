package noderule

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// planner gathers one plan. Most nodes are as they should be, so it copies, sorts and
// remembers nothing before there is something to change.
type planner struct {
	node  *Node
	rules []*Rule
	// verdicts are those of all rules, in their order; nil if the rules and the node alone decide.
	verdicts []Verdict
	// listed are the taints of all rules, also of rules that are gone.
	listed RuleTaints
	now    time.Time
	plan   Plan
}

// rulingOf is what the rule of this place says of the node.
func (p *planner) rulingOf(i int) ruling {
	if p.verdicts != nil {
		return p.verdicts[i].ruling()
	}
	return judge(p.rules[i], p.node, p.now)
}

// run settles all rules, and sweeps what others left.
func (p *planner) run() {
	p.plan.Taints = p.node.Taints
	for i, rule := range p.rules {
		p.settle(rule, p.rulingOf(i))
	}
	p.sweep()
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

func (p *planner) settle(rule *Rule, r ruling) {
	switch {
	case rule.frozen() && bornLate(rule, p.node):
		p.takeBackOf(rule)
	case rule.frozen():
	case !rule.Active() || r.state == NotSelected:
		p.letGo(rule)
	case r.completed:
		p.letGo(rule)
		p.noteBoot(rule)
	case r.cause == CauseDependency && r.state != Held: // it stays as it is
	case r.state == Held:
		p.hold(rule, r)
	case r.state == Released:
		p.release(rule, r)
	}
}

func (p *planner) hold(rule *Rule, r ruling) {
	switch {
	case !p.has(rule.ID()):
		p.plan.Taints = append(p.ownTaints(), rule.Taint)
		p.change(Added, claimOf(rule))
		p.own(rule, r, newRecord(rule, OriginAdded, p.now))
	case !owns(rule, p.node):
		p.change(Adopted, claimOf(rule))
		p.own(rule, r, newRecord(rule, OriginAdopted, p.now))
	case rule.timed:
		p.own(rule, r, recall(rule, p.node))
	}
}

// own writes the rule's record of a node that it holds.
func (p *planner) own(rule *Rule, r ruling, rec record) {
	if rule.timed {
		p.keepRecord(&rec, rule, r)
	}
	p.note(rule.holdKey, rec.String(), claimOf(rule))
	if rule.MaxUnavailable != nil || has(p.node.Annotations, rule.memoryKey) {
		p.remember(rule, r, inUse(rule, p.node))
	}
}

// keepRecord brings a record up to date with what the ruling says of time.
func (p *planner) keepRecord(rec *record, rule *Rule, r ruling) {
	if rule.Boot {
		known := recall(rule, p.node)
		rec.Boot, rec.Armed, rec.Beats = known.Boot, known.Armed, known.Beats
	}
	if rule.Boot && !p.node.ready() && hasCompleted(rule, p.node) {
		arm(rec, p.node)
		p.noteBoot(rule)
	}
	rec.Ahead = aheadOf(rule, p.node, rec, p.now)
	if r.cause == CauseDependency { // its clocks do not run
		rec.Met, rec.Waits = "", rule.Deadline > 0
		return
	}
	switch {
	case r.cause != CauseMinReady:
		rec.Met = ""
	case rec.Met == "":
		rec.Met = timeOf(p.now)
	}
	if rec.Waits || (rule.Deadline > 0 || rule.Boot) && rec.since(p.node).IsZero() {
		rec.Waits, rec.Since, rec.Stuck = false, p.now.UTC().Format(time.RFC3339), ""
	}
	if r.stuck && rec.Stuck == "" {
		rec.Stuck = timeOf(p.now)
		p.change(Stuck, claimOf(rule))
	}
}

func (p *planner) release(rule *Rule, r ruling) {
	held := owns(rule, p.node) || p.node.Has(rule.ID())
	if r.cause != CauseLimit {
		p.takeBackOf(rule)
	}
	if r.stuck {
		p.change(Expired, claimOf(rule))
	}
	if rule.Bootstrap {
		p.set(completion(rule, p.node, r.cause == CauseDeadline))
		p.change(Completed, claimOf(rule))
	}
	if rule.remembers() || has(p.node.Annotations, rule.memoryKey) {
		p.remember(rule, r, held || inUse(rule, p.node))
	}
}

// remember writes what the rule has to know of the node later: that it is in use, which a node
// that is older than the rule is anyway, and that it was released by the deadline.
func (p *planner) remember(rule *Rule, r ruling, used bool) {
	m := remembered(rule, p.node)
	if rule.MaxUnavailable != nil && used && m.InUse == "" && !p.node.Created.Before(rule.Created) {
		m.InUse = timeOf(p.now)
	}
	switch {
	case r.cause != CauseDeadline:
		m.Expired = ""
	case m.Expired == "":
		m.Expired = timeOf(p.now)
	}
	if value := m.String(); value != "" {
		p.note(rule.memoryKey, value, claimOf(rule))
	} else {
		p.remove(rule.memoryKey, claimOf(rule))
	}
}

// noteBoot adds the boot to a completion that was written before the rule looked at boots, in
// whichever form, and drops it when the rule looks at them no more: it would be another one by the
// time it does again.
func (p *planner) noteBoot(rule *Rule) {
	value, there := p.node.Annotations[rule.completedKey]
	if !there && !rule.Boot || rule.Boot && p.node.BootID == "" {
		return
	}
	if _, told := completedIn(value); told != rule.Boot {
		key, noted := completion(rule, p.node, byDeadline(value))
		p.note(key, noted, claimOf(rule))
	}
}

// letGo takes back what a rule put on a node that it does not speak of, or is done with. A
// rule that is being deleted also takes its memory along.
func (p *planner) letGo(rule *Rule) {
	if owns(rule, p.node) || rule.inherits(p.node) {
		p.takeBackOf(rule)
	}
	if rule.Deleting {
		p.remove(rule.completedKey, claimOf(rule))
	}
	if rule.Deleting || rule.Withdrawn {
		p.remove(rule.memoryKey, claimOf(rule)) // nobody else reads it
	}
}

// sweep takes back what rules left that no longer exist. A hold record that names no rule and taint
// of the list was not written by Readygate: it stays, and so does the taint.
func (p *planner) sweep() {
	var strays []string
	for key, value := range p.node.Annotations {
		if p.unlisted(key, value) {
			p.plan.Unlisted = append(p.plan.Unlisted, key)
		} else if _, ok := p.strayOf(key, value); ok {
			strays = append(strays, key)
		}
	}
	slices.Sort(p.plan.Unlisted)
	slices.Sort(strays)
	for _, key := range strays {
		uid, _ := p.strayOf(key, p.node.Annotations[key])
		p.plan.Swept = append(p.plan.Swept, uid)
		if _, held := holderOf(key); held {
			p.takeBack(claimIn(key, uid, p.node.Annotations[key]))
		} else {
			p.remove(key, claim{rule: unknownRule, uid: uid})
		}
	}
	slices.Sort(p.plan.Remove)
}

// unlisted says whether the annotation is a hold record that no rule can have written: its rule exists
// and has another taint, or the list does not have its rule with its taint.
func (p *planner) unlisted(key, value string) bool {
	uid, ok := holderOf(key)
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

// strayOf is the UID of the rule that left the annotation, if it is a record or a completion
// of one that no longer exists. A completion of the older form ends in a rule's name, which
// may look like a UID.
func (p *planner) strayOf(key, value string) (types.UID, bool) {
	if uid, ok := holderOf(key); ok {
		return uid, !p.exists(uid)
	}
	if uid, ok := rememberer(key); ok {
		return uid, !p.exists(uid)
	}
	if id, ok := strings.CutPrefix(key, v1alpha1.CompletedPrefix); !ok || p.exists(types.UID(id)) || p.isName(id) {
		return "", false
	}
	return completionOf(key, value)
}

// exists, isName and wants look through all rules: a node has few annotations that are ours,
// and few taints that go.
func (p *planner) exists(uid types.UID) bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.UID == uid })
}

func (p *planner) isName(name string) bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.Name == name })
}

// wants says whether some rule holds the node with the taint.
func (p *planner) wants(id TaintID) bool {
	for i, rule := range p.rules {
		if rule.ID() == id && rule.Active() && p.rulingOf(i).state == Held {
			return true
		}
	}
	return false
}

// takeBackOf removes the taint of a rule and its record. A record under the rule's key that names another
// taint is not the rule's, and stays.
func (p *planner) takeBackOf(rule *Rule) {
	c := claimOf(rule)
	p.drop(c)
	if owns(rule, p.node) {
		p.remove(c.record, c)
	}
}

// takeBack removes a taint and the record of it.
func (p *planner) takeBack(c claim) {
	p.drop(c)
	p.remove(c.record, c)
}

// drop takes the taint off, unless some rule wants it there or no rule may manage it: a rule
// that was stored under another CRD, or a forged record, can name any taint.
func (p *planner) drop(c claim) {
	if !p.has(c.taint) || !c.taint.managed() || p.wants(c.taint) {
		return
	}
	p.plan.Taints = slices.DeleteFunc(p.ownTaints(), func(t corev1.Taint) bool { return idOf(&t) == c.taint })
	p.change(Removed, c)
}

// ownTaints is the list of the plan, to be changed. Until then it is the node's.
func (p *planner) ownTaints() []corev1.Taint {
	if !p.plan.TaintsChanged {
		p.plan.Taints, p.plan.TaintsChanged = slices.Clone(p.plan.Taints), true
	}
	return p.plan.Taints
}

// remove deletes an annotation, if it is there. Every rule that the plan serves has a change
// in it, be it only this one.
func (p *planner) remove(key string, c claim) {
	if !has(p.node.Annotations, key) {
		return
	}
	p.plan.Remove = append(p.plan.Remove, key)
	if !p.serves(c.uid) {
		p.change(Forgotten, c)
	}
}

// note writes an annotation, if it is not there already.
func (p *planner) note(key, value string, c claim) {
	if p.node.Annotations[key] == value {
		return
	}
	p.set(key, value)
	if !p.serves(c.uid) {
		p.change(Noted, c)
	}
}

// serves says whether the plan has a change for the rule.
func (p *planner) serves(uid types.UID) bool {
	return slices.ContainsFunc(p.plan.Changes, func(change Change) bool { return change.UID == uid })
}

func (p *planner) set(key, value string) {
	if p.plan.Set == nil {
		p.plan.Set = map[string]string{}
	}
	p.plan.Set[key] = value
}

func (p *planner) change(kind ChangeKind, c claim) {
	p.plan.Changes = append(p.plan.Changes, Change{Kind: kind, Rule: c.rule, UID: c.uid, Taint: c.taint})
}

// has says whether the plan so far leaves the taint on the node.
func (p *planner) has(id TaintID) bool { return contains(p.plan.Taints, id) }

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
