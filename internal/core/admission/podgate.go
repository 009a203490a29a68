package admission

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// The account of podgate, in the manager's namespace, and the name of its leases: this prefix and the name of the node.
const (
	PodgateAccount = "readygate-podgate"
	PodgateUser    = "system:serviceaccount:" + ManagerNamespace + ":" + PodgateAccount
	LeasePrefix    = "podgate-"
)

// Podgate limits the account of the agents to gates of rules and the latch annotation, in the status of pods on the node
// that the agent runs on, and to the agent's own lease: its role can only grant "patch" on pods/status of all pods. The
// policy applies to this account only, and fails closed.
func Podgate() *admissionv1.ValidatingAdmissionPolicy {
	constraints := match("", "v1", []string{"pods", "pods/*"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect)
	constraints.ResourceRules = append(constraints.ResourceRules,
		resourceRule("coordination.k8s.io", "v1", []string{"leases"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete))
	return limit(PodgateName, ManagerNamespace, PodgateAccount, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: constraints,
		Variables: append([]admissionv1.Variable{
			nodeOfToken,
			{Name: "lease", Expression: "request.resource.resource == 'leases'"},
		}, gateVariables()...),
		Validations: []admissionv1.Validation{
			noNode,
			{
				Expression: fmt.Sprintf("!variables.lease || variables.node == '' || "+
					"request.?name.orValue('') == %s + variables.node && request.operation != 'DELETE' && request.?namespace.orValue('') == %s", quote(LeasePrefix), quote(ManagerNamespace)),
				MessageExpression: fmt.Sprintf("'an agent may create and update its own lease, %s' + variables.node + ' in %s, and not ' + "+
					"request.operation.lowerAscii() + ' ' + request.?name.orValue('') + ' in ' + request.?namespace.orValue('')", LeasePrefix, ManagerNamespace),
				Message: "an agent may create and update its own lease, and no other lease",
			},
			{Expression: "variables.lease || variables.writes", Message: "an agent may patch or update pods/status, and do nothing else to pods"},
			{
				Expression:        "!variables.writes || variables.node == '' || dyn(oldObject).?spec.?nodeName.orValue('') == variables.node",
				MessageExpression: "'this agent may write pods on its own node, ' + variables.node + ', and not on ' + dyn(oldObject).?spec.?nodeName.orValue('none')",
				Message:           "an agent may write pods on its own node, and no others",
			},
			gateConditions("an agent"), gateFields("an agent"),
		},
	})
}

// PodgateBinding binds Podgate.
func PodgateBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(PodgateName, admissionv1.Deny)
}

// Openers limits the manager and the cleanup, on pods, to opening gates of rules with one of the reasons for which podgate
// does not open them. They cannot close a gate. The policy applies to these two accounts only.
func Openers() *admissionv1.ValidatingAdmissionPolicy {
	reasons := []string{v1alpha1.ReasonAgentGone, v1alpha1.ReasonRuleDeleted, v1alpha1.ReasonNotSelected}
	return limitBoth(OpenersName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"pods", "pods/*"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect),
		Variables:        gateVariables(),
		Validations: []admissionv1.Validation{
			{Expression: "variables.writes", Message: "the manager and the cleanup may patch or update pods/status, and do nothing else to pods"},
			gateConditions("the manager or the cleanup"),
			{
				Expression: fmt.Sprintf("!variables.writes || object.?status.?conditions.orValue([]).filter(c, c.type in variables.gates && !(c in oldObject.?status.?conditions.orValue([]))).all(c, "+
					"c.status == 'True' && c.?reason.orValue('') in %s)", quoteAll(reasons)),
				Message: "the manager and the cleanup may open gates with the reason " + strings.Join(reasons, ", ") + ", and close none",
			},
			{
				Expression: "!variables.writes || variables.removed.size() == 0",
				Message:    "the manager and the cleanup may open gates, and not remove their conditions",
			},
			{
				Expression: fmt.Sprintf("!variables.writes || object.metadata.?annotations[?'%[1]s'] == oldObject.metadata.?annotations[?'%[1]s'] || "+
					"object.metadata.?annotations[?'%[1]s'].orValue('').startsWith('always ')", v1alpha1.LatchAnnotation),
				Message: "the manager and the cleanup may open the latch permanently, and not close it",
			},
			gateFields("the manager or the cleanup"),
		},
	})
}

// OpenersBinding binds Openers.
func OpenersBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(OpenersName, admissionv1.Deny)
}

// gateVariables are the variables of the policies about gates.
func gateVariables() []admissionv1.Variable {
	return []admissionv1.Variable{
		{Name: "writes", Expression: "request.resource.resource == 'pods' && request.operation == 'UPDATE' && request.?subResource.orValue('') == 'status'"},
		// The gates of the pod that rules added, and the well-known gate. Gates of rules have a slash and conditions of
		// Kubernetes do not: whatever the annotation contains, Ready belongs to the kubelet.
		{Name: "gates", Expression: fmt.Sprintf("!variables.writes ? [] : [oldObject.metadata.?annotations[?'%s'].orValue('').split(' ')].map(asked, "+
			"oldObject.?spec.?readinessGates.orValue([]).map(g, g.conditionType).filter(g, g == '%s' || g.contains('/') && g in asked))[0]", v1alpha1.GatesAnnotation, v1alpha1.DefaultGate)},
		{Name: "others", Expression: "variables.writes ? object.?status.?conditions.orValue([]).filter(c, !(c.type in variables.gates)) : []"},
		{Name: "before", Expression: "variables.writes ? oldObject.?status.?conditions.orValue([]).filter(c, !(c.type in variables.gates)) : []"},
		{Name: "removed", Expression: "!variables.writes ? [] : oldObject.?status.?conditions.orValue([]).filter(c, c.type in variables.gates && !object.?status.?conditions.orValue([]).exists(a, a.type == c.type))"},
		{Name: "conditions", Expression: touchedConditions},
		{Name: "fields", Expression: touchedPodFields()},
	}
}

// gateConditions rejects changes of conditions that are not gates of rules.
func gateConditions(who string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: "variables.others == variables.before",
		MessageExpression: "'" + who + " may write the conditions that are gates of rules (' + variables.gates.join(', ') + '), and not add, change, move or remove ' + " +
			"(variables.conditions.size() == 0 ? 'others' : variables.conditions.join(', '))",
		Message: who + " may write the conditions that are gates of rules, and not add, change, move or remove others",
	}
}

// gateFields rejects changes of all fields except conditions and the latch annotation.
func gateFields(who string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression:        "variables.fields.size() == 0",
		MessageExpression: "'" + who + " may change gates and the annotation " + v1alpha1.LatchAnnotation + " of a pod, and not ' + variables.fields.join(', ') + ' (including changes by another policy or webhook in the same request)'",
		Message:           who + " may change gates and the annotation " + v1alpha1.LatchAnnotation + " of a pod, and nothing else",
	}
}

// touchedPodFields is the expression for the names of changed fields, except conditions and the latch annotation.
func touchedPodFields() string {
	const others = "%[1]s.metadata.?annotations.orValue({}).all(k, k == '%[3]s' || %[2]s.metadata.?annotations[?k] == optional.of(%[1]s.metadata.annotations[k]))"
	return touched("!variables.writes ? [] : ", []string{
		touchedField("spec"),
		unless(fmt.Sprintf(others, "object", "oldObject", v1alpha1.LatchAnnotation)+" && "+fmt.Sprintf(others, "oldObject", "object", v1alpha1.LatchAnnotation), "metadata.annotations"),
	}, touchedMeta("annotations"), touchedIn[corev1.PodStatus]("status", "conditions"))
}

// ReservedGates allows only the accounts of Readygate to set the gates of rules to True and to open a latch, on pods that
// rules selected when they were created. Every account may set such a gate to False, close a latch and write other
// conditions. No other account may change labels through pods/status: podgate opens the gates of a pod that no rule
// selects anymore.
//
// The gates come from the annotation that the API server adds when a pod is created. Gates of other controllers, and the
// well-known gate of pods that no rule selected, are not affected. The annotation itself becomes immutable.
//
// It fails closed: its expressions have no params and can only exceed the cost limit, which requires a pod with thousands
// of conditions. An account that may patch pods/status could create one.
func ReservedGates() *admissionv1.ValidatingAdmissionPolicy {
	const (
		latch  = "metadata.?annotations[?'" + v1alpha1.LatchAnnotation + "']"
		asked  = "metadata.?annotations[?'" + v1alpha1.GatesAnnotation + "']"
		opened = "%s.?status.?conditions.orValue([]).filter(c, c.status == 'True' && c.type in variables.gates)"
	)
	policy := validating(ReservedGatesName, admissionv1.Fail, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"pods", "pods/status"}, admissionv1.Update),
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "by-another-account", Expression: "!(" + username + " in " + quoteAll([]string{PodgateUser, ManagerUser, CleanupUser}) + ")"},
			{Name: "gated-by-a-rule", Expression: "oldObject." + asked + ".hasValue()"},
		},
		Variables: []admissionv1.Variable{
			{Name: "gates", Expression: "oldObject." + asked + ".orValue('').split(' ').filter(g, g.contains('/'))"},
			{Name: "open", Expression: fmt.Sprintf(opened, "object")},
			{Name: "openBefore", Expression: fmt.Sprintf(opened, "oldObject")},
		},
		Validations: []admissionv1.Validation{
			{
				Expression: "variables.open.size() <= variables.gates.size() && variables.open.all(c, c in variables.openBefore)",
				MessageExpression: "'only Readygate may set the reserved gates ' + variables.gates.join(', ') + ' of this pod to True: set a condition of your own type, " +
					"e.g. policy.example.com/programmed, and list it as a podCondition component in the PodReadinessRule'",
				Message: "only Readygate may set the reserved gates of this pod to True: set a condition of your own type, and list it as a podCondition component in the PodReadinessRule",
			},
			{
				Expression: "object." + latch + " == oldObject." + latch + " || !object." + latch + ".hasValue() || object." + latch + ".orValue('').startsWith('closed ')",
				Message: "only Readygate may open the latch of this pod (annotation " + v1alpha1.LatchAnnotation + "): to start it without its network, label it " +
					v1alpha1.OptOutLabel + "=" + v1alpha1.OptOut,
			},
			{
				Expression: "object." + asked + " == oldObject." + asked,
				Message:    "the annotation " + v1alpha1.GatesAnnotation + " lists the reserved gates of this pod and must not be changed or removed: leave it as it is",
			},
			{
				Expression: "request.?subResource.orValue('') != 'status' || object.metadata.?labels == oldObject.metadata.?labels",
				Message:    "labels of a pod with reserved gates must not be changed through pods/status, because rules select pods by labels: patch the pod itself",
			},
		},
	})
	for i := range policy.Spec.Validations {
		policy.Spec.Validations[i].Reason = ptr.To(metav1.StatusReasonForbidden)
	}
	return policy
}

// ReservedGatesBinding binds ReservedGates.
func ReservedGatesBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(ReservedGatesName, admissionv1.Deny)
}
