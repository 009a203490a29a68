package admission

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// The account of the cleanup, in the manager's namespace.
const (
	CleanupAccount = "readygate-cleanup"
	CleanupUser    = "system:serviceaccount:" + ManagerNamespace + ":" + CleanupAccount
)

// KubernetesConditions are reported by Kubernetes itself, on every node.
var KubernetesConditions = []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}

// Cleanup limits the account of the cleanup, on nodes, to removals: of taints that rules may manage, of our annotations,
// and of conditions that Kubernetes does not report itself. The account cannot add or change anything, so it cannot
// bypass the limits of the manager and of the reporters. The policy applies to this account only, and fails closed.
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
					" + ' (including changes by another policy or webhook in the same request)'",
			},
		},
	})
}

// CleanupBinding binds Cleanup.
func CleanupBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(CleanupName, admissionv1.Deny)
}

// touchedByCleanup is the expression for the names of the changed fields that must not change.
func touchedByCleanup() string {
	keys := prefixed("k", nodev1alpha1.HoldPrefix, nodev1alpha1.CompletedPrefix, nodev1alpha1.MemoryPrefix)
	managed := prefixed("t.key", nodev1alpha1.TaintPrefixes...)
	return touched("!variables.update ? [] : ", []string{
		unless("variables.annotations.all(k, k in variables.annotationsBefore && variables.annotationsBefore[k] == variables.annotations[k]) && "+
			fmt.Sprintf("variables.annotationsBefore.all(k, k in variables.annotations || !variables.status && (%s))", keys), "annotations"),
		unless(fmt.Sprintf("variables.taints.filter(t, !(%s)) == variables.taintsBefore.filter(t, !(%s)) && ", managed, managed)+
			fmt.Sprintf("variables.taints.filter(t, %s).all(t, t in variables.taintsBefore)", managed), "taints"),
		unless("variables.conditions.all(c, c in variables.conditionsBefore) && "+
			fmt.Sprintf("variables.conditionsBefore.all(c, c in variables.conditions || !(c.type in %s))", quoteAll(KubernetesConditions)), "conditions"),
	}, touchedMeta("annotations"), touchedIn[corev1.NodeSpec]("spec", "taints"), touchedIn[corev1.NodeStatus]("status", "conditions"))
}

func unless(expression, name string) string { return fmt.Sprintf("(%s) ? '' : '%s'", expression, name) }

// Rules limits the manager and the cleanup, on rules of both kinds, to adding and removing the finalizers of Readygate: a
// role can only grant "patch" on whole rules. The policy does not match requests of other accounts, the status (a
// subresource) and deletions.
func Rules() *admissionv1.ValidatingAdmissionPolicy {
	constraints := match(nodev1alpha1.GroupVersion.Group, nodev1alpha1.GroupVersion.Version, []string{"nodereadinessrules"}, admissionv1.Update)
	constraints.ResourceRules = append(constraints.ResourceRules,
		resourceRule(podv1alpha1.GroupVersion.Group, podv1alpha1.GroupVersion.Version, []string{"podreadinessrules"}, admissionv1.Update))
	const may = "the manager and the cleanup may add and remove their finalizer on rules, and not change "
	return limitBoth(RulesName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: constraints,
		Variables:        []admissionv1.Variable{{Name: "touched", Expression: touchedOfRules()}},
		Validations: []admissionv1.Validation{{
			Expression:        "variables.touched.size() == 0",
			MessageExpression: quote(may) + " + variables.touched.join(', ') + ' (including changes by another policy or webhook in the same request)'",
			Message:           may + "anything else",
		}},
	})
}

// RulesBinding binds Rules.
func RulesBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(RulesName, admissionv1.Deny)
}

// touchedOfRules is the expression for the names of the changed fields that must not change.
func touchedOfRules() string {
	others := fmt.Sprintf("metadata.?finalizers.orValue([]).filter(f, !(f in %s))", quoteAll([]string{nodev1alpha1.Finalizer, podv1alpha1.Finalizer}))
	return touched("", []string{touchedField("spec"), unless("object."+others+" == oldObject."+others, "finalizers of other controllers")},
		touchedIn[metav1.ObjectMeta]("metadata", slices.Concat(keptByTheServer, []string{"finalizers"})...))
}
