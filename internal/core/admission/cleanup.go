package admission

import (
	"fmt"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Who uninstalls, in the manager's namespace.
const (
	CleanupAccount = "readygate-cleanup"
	CleanupUser    = "system:serviceaccount:" + ManagerNamespace + ":" + CleanupAccount
)

// KubernetesConditions are reported by Kubernetes itself, on every node.
var KubernetesConditions = []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}

// Cleanup limits the account that uninstalls, on nodes, to removals: of taints that rules may
// manage, of our annotations, and of conditions that Kubernetes does not report itself. It
// adds and changes nothing, so it is no way around what limits the manager and the reporters.
// It is asked about that one account only, and where it cannot be asked, the account may do
// nothing.
func Cleanup() *admissionv1.ValidatingAdmissionPolicy {
	return limit(CleanupName, ManagerNamespace, CleanupAccount, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"nodes", "nodes/*"},
			admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect),
		Variables: []admissionv1.Variable{
			{Name: "update", Expression: "request.operation == 'UPDATE' && request.?subResource.orValue('') in ['', 'status']"},
			{Name: "status", Expression: "request.?subResource.orValue('') == 'status'"},
			{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
			{Name: "annotationsBefore", Expression: "oldObject.metadata.?annotations.orValue({})"},
			{Name: "taints", Expression: "object.?spec.?taints.orValue([])"},
			{Name: "taintsBefore", Expression: "oldObject.?spec.?taints.orValue([])"},
			{Name: "conditions", Expression: "object.?status.?conditions.orValue([])"},
			{Name: "conditionsBefore", Expression: "oldObject.?status.?conditions.orValue([])"},
			{Name: "touched", Expression: touchedByCleanup()},
		},
		Validations: []admissionv1.Validation{
			{Expression: "variables.update", Message: "the cleanup may only update nodes and their status"},
			{
				Expression: "variables.touched.size() == 0",
				MessageExpression: "'the cleanup may remove taints and annotations of rules, and conditions that a reporter reported, from nodes, and not change ' + variables.touched.join(', ')" +
					" + ' (nor may another policy or webhook in its request)'",
			},
		},
	})
}

// CleanupBinding puts Cleanup in force.
func CleanupBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(CleanupName, admissionv1.Deny)
}

// touchedByCleanup is the expression for the names of what is changed and must not be. Of the
// metadata, the API server itself keeps what is left out.
func touchedByCleanup() string {
	ours := prefixed("k", v1alpha1.HoldPrefix, v1alpha1.CompletedPrefix, v1alpha1.MemoryPrefix)
	managed := prefixed("t.key", v1alpha1.TaintPrefixes...)
	touched := []string{
		unless("variables.annotations.all(k, k in variables.annotationsBefore && variables.annotationsBefore[k] == variables.annotations[k]) && "+
			fmt.Sprintf("variables.annotationsBefore.all(k, k in variables.annotations || !variables.status && (%s))", ours), "annotations"),
		unless(fmt.Sprintf("variables.taints.filter(t, !(%s)) == variables.taintsBefore.filter(t, !(%s)) && ", managed, managed)+
			fmt.Sprintf("variables.taints.filter(t, %s).all(t, t in variables.taintsBefore)", managed), "taints"),
		unless("variables.conditions.all(c, c in variables.conditionsBefore) && "+
			fmt.Sprintf("variables.conditionsBefore.all(c, c in variables.conditions || !(c.type in %s))", quoteAll(KubernetesConditions)), "conditions"),
	}
	for _, field := range fieldsOf(reflect.TypeFor[metav1.ObjectMeta](), "annotations", "managedFields", "resourceVersion", "generation") {
		touched = append(touched, touchedField("metadata."+field))
	}
	for _, field := range fieldsOf(reflect.TypeFor[corev1.NodeSpec](), "taints") {
		touched = append(touched, touchedField("spec."+field))
	}
	for _, field := range fieldsOf(reflect.TypeFor[corev1.NodeStatus](), "conditions") {
		touched = append(touched, touchedField("status."+field))
	}
	return "!variables.update ? [] : [\n  " + strings.Join(touched, ",\n  ") + "\n].filter(f, f != '')"
}

func unless(expression, name string) string { return fmt.Sprintf("(%s) ? '' : '%s'", expression, name) }
