package readiness

import (
	"encoding/json"
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
// holds since the node was created. A record is a hint for clean-up that anybody who may
// write nodes can forge: it is believed only about taints that a rule may manage at all.
type record struct {
	Rule   string `json:"rule"`
	Taint  string `json:"taint"`
	Origin Origin `json:"origin"`
	Since  string `json:"since,omitempty"`
}

// recordOf is the key and value of the annotation.
func recordOf(rule *Rule, origin Origin, since time.Time) (string, string) {
	r := record{Rule: rule.Name, Taint: rule.ID().String(), Origin: origin}
	if !since.IsZero() {
		r.Since = since.UTC().Format(time.RFC3339)
	}
	value, _ := json.Marshal(r) // strings only: cannot fail
	return rule.holdKey, string(value)
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
	var r record
	if json.Unmarshal([]byte(value), &r) != nil {
		return ""
	}
	return r.Origin
}

// holderOf is the UID of the rule that a record speaks of, if the key is that of a record.
func holderOf(key string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.HoldPrefix)
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
	if i := strings.LastIndexByte(r.Taint, ':'); i >= 0 {
		c.taint = TaintID{Key: r.Taint[:i], Effect: corev1.TaintEffect(r.Taint[i+1:])}
	}
	return c
}

// completion is the annotation that remembers a bootstrap-only rule's release.
func completion(rule *Rule) (string, string) {
	value, _ := json.Marshal(map[string]string{"rule-name": rule.Name}) // cannot fail
	return rule.completedKey, string(value)
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
