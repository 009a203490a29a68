package noderule

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Origin is how a rule came to own a taint on a node.
type Origin string

const (
	// OriginAdded means that the manager added the taint.
	OriginAdded Origin = "added"
	// OriginAdopted means that the node had the taint when the rule first held it.
	OriginAdopted Origin = "adopted"
	// OriginCreated means that the admission policy added the taint when the node was created.
	OriginCreated Origin = "created"
	// OriginLabelled means that the admission policy added the taint in the request that made the rule select the
	// node.
	OriginLabelled Origin = "labelled"
)

// record is the ownership record: the annotation on a node that a rule owns its taint there, how, and since when.
// Admission has no clock, so its records have no time: that of a new node counts from the node's creation. Any client
// that may write nodes can forge a record: it counts only if the list of rule taints has its rule with its taint.
type record struct {
	Rule   string `json:"rule"`
	Taint  string `json:"taint"`
	Origin Origin `json:"origin"`
	Since  string `json:"since,omitempty"`

	// Met is since when the requirements have been met, if the rule waits for some time.
	Met string `json:"met,omitempty"`
	// Stuck is when the node was reported as stuck.
	Stuck string `json:"stuck,omitempty"`
	// Waits means that the rule waits for one of dependsOn: the deadline begins when that has released the node.
	Waits bool `json:"waits,omitempty"`
	// Boot is the boot of the node that the record is about. Armed means that the node was not Ready then, and may
	// be in another boot when it is Ready again. Beats are the heartbeats of the conditions from before this boot, by
	// type: they do not count.
	Boot  string            `json:"boot,omitempty"`
	Armed bool              `json:"armed,omitempty"`
	Beats map[string]string `json:"beats,omitempty"`
	// Ahead are heartbeats that were in the future when they were first observed, by type: they never count.
	Ahead map[string]string `json:"ahead,omitempty"`
}

// since is when the hold began; zero if that is not known.
func (r *record) since(node *Node) time.Time {
	if r.Origin == OriginCreated && r.Since == "" {
		return node.Created
	}
	return timeIn(r.Since)
}

// String is the value of the annotation.
func (r *record) String() string {
	value, _ := json.Marshal(r) // strings only: cannot fail
	return string(value)
}

// recordIn decodes a record; an empty one if it cannot be decoded.
func recordIn(value string) record {
	r, _ := readRecord(value)
	return r
}

func readRecord(value string) (r record, ok bool) {
	if value == "" || json.Unmarshal([]byte(value), &r) != nil {
		return record{}, false
	}
	return r, true
}

// timeIn decodes a time of a record; zero if there is none.
func timeIn(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// timeOf encodes a time for a record: in whole seconds, rounded up.
func timeOf(t time.Time) string {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole.Format(time.RFC3339)
}

func newRecord(rule *Rule, origin Origin, since time.Time) record {
	r := record{Rule: rule.Name, Taint: rule.ID().String(), Origin: origin}
	if !since.IsZero() {
		r.Since = since.UTC().Format(time.RFC3339)
	}
	return r
}

// AdmissionRecord is the key and value of the annotation that the admission policy adds to a node with the rule's taint:
// the same for every node.
func AdmissionRecord(rule *Rule, origin Origin) (key, value string) {
	r := newRecord(rule, origin, time.Time{})
	return rule.holdKey, r.String()
}

// originIn decodes the origin of a record; empty if it cannot be decoded.
func originIn(value string) Origin {
	r := recordIn(value)
	return r.Origin
}

// ownerOf is the UID of the rule of an ownership record, if the key is that of one.
func ownerOf(key string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.HoldPrefix)
	return types.UID(uid), ok
}

// memoryOwner is the UID of the rule of a memory annotation, if the key is that of one.
func memoryOwner(key string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.MemoryPrefix)
	return types.UID(uid), ok
}

// unknownRule stands for the name of a rule that a record does not contain.
const unknownRule = "unknown"

// claimIn decodes what a record claims for a rule: no taint if it cannot be decoded.
func claimIn(key string, uid types.UID, value string) claim {
	c := claim{rule: unknownRule, uid: uid, record: key}
	var r record
	if json.Unmarshal([]byte(value), &r) != nil {
		return c
	}
	if len(validation.IsDNS1123Subdomain(r.Rule)) == 0 {
		c.rule = r.Rule
	}
	c.taint = taintIn(r.Taint)
	return c
}

// taintIn is the taint in a text; zero if there is none.
func taintIn(text string) TaintID {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return TaintID{}
	}
	return TaintID{Key: text[:i], Effect: corev1.TaintEffect(text[i+1:])}
}

// RuleTaints are the taints of rules by UID, of rules that exist and of rules that did. An ownership record counts only
// if it names one of these pairs: any client that may write a node can forge a record.
type RuleTaints map[types.UID]TaintID

// ParseTaint reads a taint as TaintID.String writes it. It fails for a taint that no rule may manage, and
// for a key that the API server would reject: the text may be forged.
func ParseTaint(text string) (TaintID, bool) {
	id := taintIn(text)
	return id, id.managed() && len(validation.IsQualifiedName(id.Key)) == 0 && slices.Contains(effects, id.Effect)
}

// RecordTaint is the taint in the value of an ownership record, if a rule may manage it.
func RecordTaint(value string) (TaintID, bool) {
	r := recordIn(value)
	return ParseTaint(r.Taint)
}

// completion is the completion record of a bootstrap-only rule on a node, with the boot if the rule has bootstrapScope
// Boot.
func completion(rule *Rule, node *Node, deadline bool) (string, string) {
	words := map[string]string{"rule-name": rule.Name}
	if rule.Boot && node.BootID != "" {
		words[bootWord] = node.BootID
	}
	if deadline {
		words[byWord] = "deadline"
	}
	value, _ := json.Marshal(words) // cannot fail
	return rule.completedKey, string(value)
}

// Keys in a completion record: the boot, and what released the node if it was not the conditions.
const (
	bootWord = "boot-id"
	byWord   = "by"
)

// releasedByDeadline reports whether a completion record was written by the deadline.
func releasedByDeadline(value string) bool { return strings.Contains(value, `"`+byWord+`":"deadline"`) }

// bootOf is the boot in a completion record. It decodes what completion encodes, and does not allocate.
func bootOf(value string) (boot string, recorded bool) {
	const before = `"` + bootWord + `":"`
	_, rest, ok := strings.Cut(value, before)
	if !ok {
		return "", false
	}
	boot, _, recorded = strings.Cut(rest, `"`)
	return boot, recorded
}

// completionOf is the UID of the rule of a completion record, if the annotation is one. The older form, which ends in
// the name of the rule, is not.
func completionOf(key, value string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.CompletedPrefix)
	if !ok || !isUUID(uid) {
		return "", false
	}
	var j map[string]string
	if json.Unmarshal([]byte(value), &j) != nil || j["rule-name"] == "" {
		return "", false
	}
	return types.UID(uid), true
}

// isUUID reports whether s has the form of an object's UID: 8-4-4-4-12 hexadecimal digits.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') {
			return false
		} else if !dash && !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}

// arm prepares a record for a node that may be in another boot when it is Ready again. Its heartbeats are compared
// then.
func arm(rec *record, node *Node) {
	rec.Boot, rec.Armed, rec.Beats = node.BootID, true, nil
}

// beatsOf are the heartbeats of the conditions that the rule names.
func beatsOf(rule *Rule, node *Node) map[string]string {
	beats := map[string]string{}
	for i := range rule.Requirements {
		if condition := node.condition(rule.Requirements[i].Type); condition != nil {
			beats[rule.Requirements[i].Type] = beatOf(condition)
		}
	}
	return beats
}

// futureBeats are the heartbeats in the future, of conditions whose age the rule limits; nil if there are none. The
// record is the one that is being written.
func futureBeats(rule *Rule, node *Node, rec *record, now time.Time) map[string]string {
	var future map[string]string
	for i := range rule.Requirements {
		requirement := &rule.Requirements[i]
		condition := node.condition(requirement.Type)
		if condition == nil {
			continue
		}
		if reason, _ := unknownReason(requirement, condition, rec, now); reason != UnknownHeartbeatInFuture {
			continue
		}
		if future == nil {
			future = map[string]string{}
		}
		future[requirement.Type] = beatOf(condition)
	}
	return future
}

// beatOf is a condition's heartbeat, or its last transition if it has none, and its status: times have whole seconds.
func beatOf(condition *corev1.NodeCondition) string {
	beat := condition.LastHeartbeatTime
	if beat.IsZero() {
		beat = condition.LastTransitionTime
	}
	return beat.UTC().Format(time.RFC3339) + " " + string(condition.Status)
}

// memory is the annotation on a node with the state that a rule keeps about a node that it does not hold.
type memory struct {
	Rule string `json:"rule"`
	// InUse is since when the node counts as in use; see maxUnavailable.
	InUse string `json:"inUse,omitempty"`
	// Expired is when the node was released because it was stuck. It is removed when the requirements are met.
	Expired string `json:"expired,omitempty"`
}

// String is the value of the annotation; empty if there is nothing to record.
func (m *memory) String() string {
	if m.InUse == "" && m.Expired == "" {
		return ""
	}
	value, _ := json.Marshal(m) // strings only: cannot fail
	return string(value)
}

// decodeMemory returns what the rule's memory annotation on the node contains. One that cannot be decoded is empty.
func decodeMemory(rule *Rule, node *Node) memory {
	var m memory
	if value, ok := node.Annotations[rule.memoryKey]; ok {
		_ = json.Unmarshal([]byte(value), &m)
	}
	return m
}
