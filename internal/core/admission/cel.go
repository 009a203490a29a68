package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// username is the expression for the user of the request.
const username = "request.userInfo.?username.orValue('')"

// quote is the text as a CEL string literal. Everything but printable ASCII is escaped, in a
// way that Go and CEL read alike, so that no text can end the literal.
func quote(text string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(text, "\uFFFD")) }

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// selects is the expression that a map of labels matches a selector. The map is
// named by an expression that cannot fail.
func selects(requirements labels.Requirements, labelMap string) string {
	terms := make([]string, 0, len(requirements))
	for i := range requirements {
		terms = append(terms, term(&requirements[i], labelMap))
	}
	return allOf(terms)
}

func term(r *labels.Requirement, labelMap string) string {
	key := quote(r.Key())
	values := r.ValuesUnsorted()
	slices.Sort(values)
	has := fmt.Sprintf("%s in %s", key, labelMap)
	is := fmt.Sprintf("%s && %s[%s] in %s", has, labelMap, key, quoteAll(values))
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return is
	case selection.NotIn, selection.NotEquals:
		return "!(" + is + ")"
	case selection.Exists:
		return has
	case selection.DoesNotExist:
		return "!(" + has + ")"
	default: // rules have no other operator; one that they had would select nothing
		return "false"
	}
}

// met is the expression that a rule's requirements are met by variables.conditions.
func met(rule *noderule.Rule) string {
	terms := make([]string, 0, len(rule.Requirements))
	for _, requirement := range rule.Requirements {
		terms = append(terms, requirementMet(requirement))
	}
	if rule.AnyOf {
		return "(" + strings.Join(terms, " || ") + ")"
	}
	return allOf(terms)
}

// requirementMet is the expression that a requirement is met. It uses the first condition of the type, or the default
// status if there is none. Admission has no clock: a requirement with maxAge is never met.
func requirementMet(r v1alpha1.ConditionRequirement) string {
	if r.MaxAge != nil {
		return "false"
	}
	missing := r.DefaultStatus
	if missing == "" {
		missing = corev1.ConditionUnknown
	}
	accepted := []string{string(r.RequiredStatus)}
	if r.RequiredStatus == corev1.ConditionUnknown {
		accepted = append(accepted, "")
	}
	return fmt.Sprintf("(variables.conditions.filter(c, c.type == %s).map(c, c.status) + [%s])[0] in %s",
		quote(r.Type), quote(string(missing)), quoteAll(accepted))
}

// completed is the expression that a bootstrap-only rule that was taken over has released the node before, or has
// released it since its last boot.
func completed(rule *noderule.Rule) string {
	key, older := rule.CompletedKeys()
	if rule.Boot {
		ready := requirementMet(v1alpha1.ConditionRequirement{Type: string(corev1.NodeReady), RequiredStatus: corev1.ConditionTrue})
		return fmt.Sprintf("(%[1]s in variables.annotations && variables.boot != '' && variables.annotations[%[1]s].contains(variables.boot) && %[2]s)", quote(key), ready)
	}
	return fmt.Sprintf("(%s in variables.annotations || %s in variables.annotations && variables.created != null && timestamp(variables.created) < timestamp(%s))",
		quote(key), quote(older), quote(rule.TakenOver.UTC().Format(time.RFC3339)))
}

func allOf(terms []string) string {
	if len(terms) == 0 {
		return "true"
	}
	return "(" + strings.Join(terms, " && ") + ")"
}
