package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// The namespace and the account of the manager.
const (
	ManagerNamespace = "readygate-system"
	ManagerAccount   = "readygate-manager"
	ManagerUser      = "system:serviceaccount:" + ManagerNamespace + ":" + ManagerAccount
)

// Manager limits the manager's own account, on nodes, to taints with the prefixes that rules may manage and to our
// annotations: its role can only grant "patch" on whole nodes. The policy applies to this account only, and fails closed.
func Manager() *admissionv1.ValidatingAdmissionPolicy {
	return validating(ManagerName, admissionv1.Fail, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"nodes", "nodes/*"},
			admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect),
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "by-the-manager", Expression: username + " == " + quote(ManagerUser)},
		},
		Variables: []admissionv1.Variable{
			{Name: "update", Expression: "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''"},
			{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
			{Name: "before", Expression: "oldObject.metadata.?annotations.orValue({})"},
		},
		Validations: managerValidations(),
	})
}

// ManagerBinding binds Manager.
func ManagerBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(ManagerName, admissionv1.Deny)
}

func managerValidations() []admissionv1.Validation {
	keys := prefixed("k", v1alpha1.HoldPrefix, v1alpha1.CompletedPrefix, v1alpha1.MemoryPrefix)
	foreign := "!(" + prefixed("t.key", v1alpha1.TaintPrefixes...) + ")"
	validations := []admissionv1.Validation{
		{Expression: "variables.update", Message: "the manager may only update nodes, and none of their subresources", Reason: ptr.To(metav1.StatusReasonForbidden)},
		unchanged("annotations that are not Readygate's", onlyReadygate(keys)),
		unchanged("taints that no rule may manage",
			fmt.Sprintf("object.?spec.?taints.orValue([]).filter(t, %s) == oldObject.?spec.?taints.orValue([]).filter(t, %s)", foreign, foreign)),
	}
	return append(validations, unchangedFields(map[string][]string{
		"metadata": fieldsOf(reflect.TypeFor[metav1.ObjectMeta](), slices.Concat(keptByTheServer, []string{"annotations"})...),
		"spec":     fieldsOf(reflect.TypeFor[corev1.NodeSpec](), "taints"),
	}))
}

// keptByTheServer are fields of the metadata that no request can change: the API server rejects the change, or sets them
// itself.
var keptByTheServer = []string{
	"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "resourceVersion", "generation",
}

// onlyReadygate is the expression that only annotations of Readygate changed. Nodes have dozens of annotations, and every step
// of a loop has a cost: the expression iterates once over the larger side, and over the other side only if the counts show
// a further change.
func onlyReadygate(keys string) string {
	differ := func(a, b string) string {
		return fmt.Sprintf("[%[1]s.filter(k, %[2]s[?k] != %[1]s[?k])].all(changed, changed.all(k, %[3]s) && "+
			"(%[2]s.size() == %[1]s.size() - changed.size() + changed.filter(k, k in %[2]s).size() || %[2]s.all(k, k in %[1]s || %[3]s)))", a, b, keys)
	}
	return fmt.Sprintf("[variables.annotations].all(after, [variables.before].all(before, after.size() >= before.size() ? %s : %s))", differ("after", "before"), differ("before", "after"))
}

// unchangedFields is one validation for all fields: each validation costs about ten microseconds per write of a node. The
// API server also evaluates the message expression for writes that it admits.
func unchangedFields(fields map[string][]string) admissionv1.Validation {
	var same, changed []string
	for _, parent := range slices.Sorted(maps.Keys(fields)) {
		for _, field := range fields[parent] {
			equal := fmt.Sprintf("object.?%s.?%s == oldObject.?%s.?%s", parent, field, parent, field)
			same = append(same, equal)
			changed = append(changed, fmt.Sprintf("(%s ? [] : [%s])", equal, quote(parent+"."+field)))
		}
	}
	validation := unchanged("other fields", "("+strings.Join(same, " && ")+")")
	validation.MessageExpression = quote(mayChange) + " + (" + strings.Join(changed, " + ") + ").join(', ') + " + quote(norOthers)
	return validation
}

const (
	mayChange = "the manager may change taints and annotations of rules on nodes, and not "
	norOthers = " (including changes by another policy or webhook in the same request)"
)

func unchanged(what, expression string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: "!variables.update || " + expression,
		Message:    mayChange + what + norOthers,
		Reason:     ptr.To(metav1.StatusReasonForbidden),
	}
}

// prefixed is the expression that a string begins with one of the prefixes.
func prefixed(text string, prefixes ...string) string {
	terms := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		terms[i] = fmt.Sprintf("%s.startsWith(%s)", text, quote(prefix))
	}
	return strings.Join(terms, " || ")
}

// fieldsOf returns the JSON names of a type's fields, except some. They come from the type, so that fields of later
// versions are included.
func fieldsOf(t reflect.Type, but ...string) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && !slices.Contains(but, name) {
			names = append(names, name)
		}
	}
	return names
}
