package admission

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Reporter is the service account of a reporter, and the types of the conditions that it
// reports.
type Reporter struct {
	Namespace, Account string
	Types              []string
}

// Policy limits the reporter's account, on nodes, to conditions of its types, in the status of the node that its pod runs
// on: a role can only grant "patch" on nodes/status of all nodes. The policy applies to this account only, and fails
// closed.
//
// The account and the types are on one line each, so that users can copy the policy for their own reporters.
func (r Reporter) Policy() *admissionv1.ValidatingAdmissionPolicy {
	return limit(nameFor("reporter", r.Namespace, r.Account), r.Namespace, r.Account, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"nodes", "nodes/*"},
			admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect),
		Variables: []admissionv1.Variable{
			{Name: "types", Expression: quoteAll(r.Types)},
			nodeOfToken,
			{Name: "reports", Expression: "request.operation == 'UPDATE' && request.?subResource.orValue('') == 'status'"},
			{Name: "others", Expression: "variables.reports ? object.?status.?conditions.orValue([]).filter(c, !(c.type in variables.types)) : []"},
			{Name: "before", Expression: "variables.reports ? oldObject.?status.?conditions.orValue([]).filter(c, !(c.type in variables.types)) : []"},
			{Name: "own", Expression: "variables.reports ? object.?status.?conditions.orValue([]).size() - variables.others.size() : 0"},
			{Name: "ownBefore", Expression: "variables.reports ? oldObject.?status.?conditions.orValue([]).size() - variables.before.size() : 0"},
			{Name: "conditions", Expression: touchedConditions},
			{Name: "fields", Expression: touchedFields()},
		},
		Validations: append([]admissionv1.Validation{
			{Expression: "variables.reports", Message: "a reporter may patch or update nodes/status, and do nothing else to nodes"},
		}, append(ownNode(), admissionv1.Validation{
			Expression: "variables.others == variables.before",
			MessageExpression: "'this reporter may report the conditions ' + variables.types.join(', ') + ' (the types that its policy names), and not add, change, move or remove ' + " +
				"(variables.conditions.size() == 0 ? 'others' : variables.conditions.join(', '))",
			Message: "this reporter may report the conditions that its policy names, and not add, change, move or remove others",
		}, admissionv1.Validation{
			Expression: "!variables.reports || variables.own <= variables.types.size() || variables.own <= variables.ownBefore",
			Message:    "a reporter may report each of its conditions once",
		}, admissionv1.Validation{
			Expression: "variables.fields.size() == 0",
			MessageExpression: "'a reporter may change conditions of its node, and not ' + variables.fields.join(', ') + " +
				"' (including changes by another policy or webhook in the same request)'",
		})...),
	})
}

// Binding binds Policy.
func (r Reporter) Binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(r.Policy().Name, admissionv1.Deny)
}

// OwnNode limits an account to the node that its pod runs on when it writes the status of a node, and has no other effect.
// It is for an account that a reporter shares with a network plugin.
func OwnNode(namespace, account string) *admissionv1.ValidatingAdmissionPolicy {
	return limit(nameFor("own-node", namespace, account), namespace, account, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"nodes/status"}, admissionv1.Update),
		Variables:        []admissionv1.Variable{nodeOfToken},
		Validations:      ownNode(),
	})
}

// OwnNodeBinding binds OwnNode.
func OwnNodeBinding(namespace, account string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(OwnNode(namespace, account).Name, admissionv1.Deny)
}

// limit returns a policy that applies to one account only, and fails closed.
func limit(name, namespace, account string, spec admissionv1.ValidatingAdmissionPolicySpec) *admissionv1.ValidatingAdmissionPolicy {
	spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "by-the-account", Expression: username + " == " + quote(userOf(namespace, account))},
	}
	for i := range spec.Validations {
		spec.Validations[i].Reason = ptr.To(metav1.StatusReasonForbidden)
	}
	return validating(name, admissionv1.Fail, spec)
}

// limitBoth returns a policy that applies to the manager and the cleanup only, and fails closed.
func limitBoth(name string, spec admissionv1.ValidatingAdmissionPolicySpec) *admissionv1.ValidatingAdmissionPolicy {
	policy := limit(name, ManagerNamespace, ManagerAccount, spec)
	policy.Spec.MatchConditions[0].Expression = username + " in " + quoteAll([]string{ManagerUser, CleanupUser})
	return policy
}

// nodeOfToken is the node of the pod that the requester's token is bound to; empty if there is none. API servers provide it
// since 1.30.
var nodeOfToken = admissionv1.Variable{
	Name: "node", Expression: "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')",
}

// noNode rejects a token without a node name.
var noNode = admissionv1.Validation{
	Expression: "variables.node != ''",
	Message: "the token contains no node name, so the node of the account is not known: use the token that the kubelet mounts into the pod (Kubernetes 1.30 or newer), " +
		"and not one of a Secret or one that is not bound to a pod",
}

// ownNode checks that the request is for nodeOfToken.
func ownNode() []admissionv1.Validation {
	return []admissionv1.Validation{
		noNode,
		{
			Expression:        "variables.node in ['', request.?name.orValue('')]",
			MessageExpression: "'this account may write the node that its pod runs on, ' + variables.node + ', and not ' + request.?name.orValue('')",
		},
	}
}

// touchedConditions are the types of other reporters' conditions that changed; none if only their order changed. The API
// server evaluates messages in every request, so the expression compares conditions only if the request is rejected.
const touchedConditions = "variables.others == variables.before ? [] : " +
	"variables.others.filter(c, !(c in variables.before)).map(c, c.type) + " +
	"variables.before.filter(b, !variables.others.exists(c, c.type == b.type)).map(b, b.type)"

// touchedFields is the expression for the names of changed fields, except conditions.
func touchedFields() string {
	return touched("!variables.reports ? [] : ", []string{touchedField("spec")}, touchedMeta(), touchedIn[corev1.NodeStatus]("status", "conditions"))
}

// touched is the expression for the names of all changed fields; unless is a prefix with the condition for an empty list.
// Each check is an expression for a name, or for an empty string if the field is unchanged.
func touched(unless string, checks ...[]string) string {
	return unless + "[\n  " + strings.Join(slices.Concat(checks...), ",\n  ") + "\n].filter(f, f != '')"
}

// touchedIn returns one check per field of a part of an object, except some fields.
func touchedIn[T any](part string, but ...string) []string {
	fields := fieldsOf(reflect.TypeFor[T](), but...)
	for i := range fields {
		fields[i] = touchedField(part + "." + fields[i])
	}
	return fields
}

// touchedMeta returns one check per field of the metadata, except some fields. The API server itself maintains the other
// fields that are left out.
func touchedMeta(but ...string) []string {
	return touchedIn[metav1.ObjectMeta]("metadata", append(but, "managedFields", "resourceVersion", "generation")...)
}

func touchedField(path string) string {
	optional := ".?" + strings.ReplaceAll(path, ".", ".?")
	return fmt.Sprintf("object%s == oldObject%s ? '' : '%s'", optional, optional, path)
}

func userOf(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// nameFor is the name of a policy for an account. A name that is too long is truncated, and made unique by a checksum.
func nameFor(what, namespace, account string) string {
	name := PartOf + "-" + what + "-" + namespace + "." + account // namespaces hold no dots, accounts may
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := fmt.Sprintf("-%08x", crc32.ChecksumIEEE([]byte(name)))
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(sum)], "-.") + sum
}

// Reserved rejects requests of all accounts except the reporter, including administrators, that add, change or remove a
// condition of its types, when a node is created or later. The cleanup may remove such a condition: the reporter does not
// run anymore at that time. Unchanged conditions are allowed. A compromised kubelet can still deceive the reporter on its
// node; the policy prevents accidents, and writes of agents on other nodes.
//
// It applies to requests of all accounts for nodes, so it fails open. It has no effect until it is bound.
func (r Reporter) Reserved() *admissionv1.ValidatingAdmissionPolicy {
	return validating(nameFor("reserved", r.Namespace, r.Account), admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"nodes", "nodes/status"}, admissionv1.Create, admissionv1.Update),
		Variables: []admissionv1.Variable{
			{Name: "reporter", Expression: quote(userOf(r.Namespace, r.Account))},
			{Name: "types", Expression: quoteAll(r.Types)},
			{Name: "conditions", Expression: "object.?status.?conditions.orValue([])"},
			{Name: "before", Expression: "oldObject == null ? [] : oldObject.?status.?conditions.orValue([])"},
			{Name: "touched", Expression: "variables.types.filter(t, variables.conditions.filter(c, c.type == t) != variables.before.filter(c, c.type == t))"},
		},
		Validations: []admissionv1.Validation{{
			Expression: "variables.touched.size() == 0 || " + username + " == variables.reporter || " +
				username + " == " + quote(CleanupUser) + " && !variables.conditions.exists(c, c.type in variables.touched)",
			MessageExpression: "'only ' + variables.reporter + ' may add, change or remove the condition ' + variables.touched.join(', ')" +
				" + ' of a node: leave it as it is, or delete the binding of this policy first'",
			Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	})
}

// ReservedBinding binds Reserved.
func (r Reporter) ReservedBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(r.Reserved().Name, admissionv1.Deny)
}
