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

// Origin says how a rule came to own a taint on a node.
type Origin string

const (
	// OriginAdded says that the rule put the taint on the node.
	OriginAdded Origin = "added"
	// OriginAdopted says that the taint was there when the rule first held the node.
	OriginAdopted Origin = "adopted"
	// OriginBorn says that the API server put the taint on as the node was created.
	OriginBorn Origin = "born"
	// OriginLabelled says that the API server put the taint on in the request that made the
	// rule select the node.
	OriginLabelled Origin = "labelled"
)

// record is the annotation on a node that says that a rule owns its taint there, how it
// came to and since when. Admission has no clock, so its records have no time: one of a birth
// holds since the node was created. Any client that may write nodes can forge a record: it is
// believed only if the list of rule taints has its rule with its taint.
type record struct {
	Rule   string `json:"rule"`
	Taint  string `json:"taint"`
	Origin Origin `json:"origin"`
	Since  string `json:"since,omitempty"`

	// Met is since when the requirements have been met, if the rule waits for some time.
	Met string `json:"met,omitempty"`
	// Stuck is when it was told that the node is stuck.
	Stuck string `json:"stuck,omitempty"`
	// Waits says that another rule comes first: the deadline begins when that has released the
	// node.
	Waits bool `json:"waits,omitempty"`
	// Boot is the boot of the node that the record speaks of. Armed says that the node was not
	// Ready then, and may be in another one when it comes back. Beats are the heartbeats of the
	// conditions that were there before this boot, by type: they do not count.
	Boot  string            `json:"boot,omitempty"`
	Armed bool              `json:"armed,omitempty"`
	Beats map[string]string `json:"beats,omitempty"`
	// Ahead are heartbeats that were from a time to come when they were first seen, by type: they
	// do not count, then or later.
	Ahead map[string]string `json:"ahead,omitempty"`
}

// since is when the hold began; zero if nobody knows.
func (r *record) since(node *Node) time.Time {
	if r.Origin == OriginBorn && r.Since == "" {
		return node.Created
	}
	return timeIn(r.Since)
}

// metTime is since when the requirements have been met; zero if that is not written.
func (r *record) metTime() time.Time { return timeIn(r.Met) }

// String is the value of the annotation.
func (r *record) String() string {
	value, _ := json.Marshal(r) // strings only: cannot fail
	return string(value)
}

// recordIn is the record that a value tells; an empty one if it cannot be read.
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

// timeIn is the time that a record tells; zero if it tells none.
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

// timeOf is a time as records tell it: in whole seconds, and never one too early.
func timeOf(t time.Time) string {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole.Format(time.RFC3339)
}

// recordOf is the key and value of the annotation.
func recordOf(rule *Rule, origin Origin, since time.Time) (string, string) {
	r := newRecord(rule, origin, since)
	return rule.holdKey, r.String()
}

func newRecord(rule *Rule, origin Origin, since time.Time) record {
	r := record{Rule: rule.Name, Taint: rule.ID().String(), Origin: origin}
	if !since.IsZero() {
		r.Since = since.UTC().Format(time.RFC3339)
	}
	return r
}

// AdmissionRecord is the key and value of the annotation that the API server puts on a node
// along with the rule's taint: the same for every node.
func AdmissionRecord(rule *Rule, origin Origin) (key, value string) {
	return recordOf(rule, origin, time.Time{})
}

// bornLate says that an API server put the rule's taint on the node as it was created, though
// the rule only previewed by then: a change of a rule takes a moment to reach every one.
func bornLate(rule *Rule, node *Node) bool {
	return !rule.DryRunSince.IsZero() && !node.Created.Before(rule.DryRunSince) &&
		owns(rule, node) && originIn(node.Annotations[rule.holdKey]) == OriginBorn
}

// originIn is the origin that the value of a record tells; empty if it cannot be read.
func originIn(value string) Origin {
	r := recordIn(value)
	return r.Origin
}

// holderOf is the UID of the rule that a record speaks of, if the key is that of a record.
func holderOf(key string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.HoldPrefix)
	return types.UID(uid), ok
}

// rememberer is the UID of the rule that remembers something, if the key is that of a memory.
func rememberer(key string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.MemoryPrefix)
	return types.UID(uid), ok
}

// unknownRule stands for the name of a rule that a record does not tell.
const unknownRule = "unknown"

// claimIn is what the value of a record claims for a rule. Where it cannot be read, that is
// no taint.
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

// taintIn is the taint that a text names; zero if it names none.
func taintIn(text string) TaintID {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return TaintID{}
	}
	return TaintID{Key: text[:i], Effect: corev1.TaintEffect(text[i+1:])}
}

// RuleTaints are the taints of rules by UID, of rules that exist and of rules that did. A hold record
// is believed only if it names a pair of it: any client that may write a node can forge a record.
type RuleTaints map[types.UID]TaintID

// ParseTaint reads a taint as TaintID.String writes it. It fails for a taint that no rule may manage, and
// for a key that the API server would reject: the text may be forged.
func ParseTaint(text string) (TaintID, bool) {
	id := taintIn(text)
	return id, id.managed() && len(validation.IsQualifiedName(id.Key)) == 0 && slices.Contains(effects, id.Effect)
}

// RecordTaint is the taint that the value of a hold record names, if it is one that a rule may manage.
func RecordTaint(value string) (TaintID, bool) {
	r := recordIn(value)
	return ParseTaint(r.Taint)
}

// HasRecord says whether the node carries a hold record of the rule for the taint.
func (n *Node) HasRecord(rule types.UID, taint TaintID) bool {
	key := v1alpha1.HoldPrefix + string(rule)
	value, ok := n.Annotations[key]
	return ok && claimIn(key, rule, value).taint == taint
}

// completion is the annotation that remembers a bootstrap-only rule's release of a node, and in
// which boot it was if the rule looks at each.
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

// What a completion calls the boot, and what released the node if it was not the conditions.
const (
	bootWord = "boot-id"
	byWord   = "by"
)

// byDeadline says whether the value of a completion tells that the deadline released the node.
func byDeadline(value string) bool { return strings.Contains(value, `"`+byWord+`":"deadline"`) }

// completedIn is the boot in which a rule has completed, as the value of a completion tells. It
// reads what completion writes, and does not allocate.
func completedIn(value string) (boot string, told bool) {
	const before = `"` + bootWord + `":"`
	_, rest, ok := strings.Cut(value, before)
	if !ok {
		return "", false
	}
	boot, _, told = strings.Cut(rest, `"`)
	return boot, told
}

// completionOf is the UID of the rule that an annotation says has completed, if it is such
// an annotation. The older form, which ends in the rule's name, is not.
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

// isUUID says whether s has the form of an object's UID: 8-4-4-4-12 hexadecimal digits.
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
