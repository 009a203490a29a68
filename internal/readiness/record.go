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
)

// Record says that a rule owns its taint on a node. It is an annotation on the node, a hint
// for clean-up that anybody who may write nodes can forge: it is believed only about
// taints that a rule may manage at all.
type Record struct {
	RuleUID types.UID `json:"-"`
	Rule    string    `json:"rule"`
	Taint   TaintID   `json:"-"`
	Origin  Origin    `json:"origin"`

	// Since is when the hold began; zero means when the node was created.
	Since time.Time `json:"-"`
}

type recordJSON struct {
	Rule   string `json:"rule"`
	Taint  string `json:"taint"`
	Origin Origin `json:"origin"`
	Since  string `json:"since,omitempty"`
}

// annotation is the key and value that store the record.
func (r Record) annotation() (string, string) {
	j := recordJSON{Rule: r.Rule, Taint: r.Taint.String(), Origin: r.Origin}
	if !r.Since.IsZero() {
		j.Since = r.Since.UTC().Format(time.RFC3339)
	}
	value, _ := json.Marshal(j) // strings only: cannot fail
	return v1alpha1.HoldPrefix + string(r.RuleUID), string(value)
}

// unknownRule stands for the name of a rule that a record does not tell.
const unknownRule = "unknown"

// parseRecord reads a record back. A value that cannot be read still says which rule it
// speaks of, by the UID in the key; its taint is then empty.
func parseRecord(key, value string) (Record, bool) {
	uid, ok := strings.CutPrefix(key, v1alpha1.HoldPrefix)
	if !ok {
		return Record{}, false
	}
	record := Record{RuleUID: types.UID(uid), Rule: unknownRule}
	var j recordJSON
	if json.Unmarshal([]byte(value), &j) != nil {
		return record, true
	}
	record.Origin = j.Origin
	if len(validation.IsDNS1123Subdomain(j.Rule)) == 0 {
		record.Rule = j.Rule
	}
	if i := strings.LastIndexByte(j.Taint, ':'); i >= 0 {
		record.Taint = TaintID{Key: j.Taint[:i], Effect: corev1.TaintEffect(j.Taint[i+1:])}
	}
	record.Since, _ = time.Parse(time.RFC3339, j.Since) // unreadable: as if absent
	return record, true
}

// completion is the annotation that remembers a bootstrap-only rule's release.
func completion(rule *Rule) (string, string) {
	value, _ := json.Marshal(map[string]string{"rule-name": rule.Name}) // cannot fail
	return v1alpha1.CompletedPrefix + string(rule.UID), string(value)
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
