package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Names of the policies, and of their bindings.
const (
	TaintNewNodesName = "readygate-taint-new-nodes"
	ConflictsName     = "readygate-conflicts"
	ManagerName       = "readygate-manager"
	RemovalName       = "readygate-removal"
	CompletionsName   = "readygate-completions"
	HoldsName         = "readygate-holds"
	CleanupName       = "readygate-cleanup"
	TolerationsName   = "readygate-tolerations"
	AdviceName        = "readygate-advice"
	GateNewPodsName   = "readygate-gate-new-pods"
	PodgateName       = "readygate-podgate"
	OpenersName       = "readygate-openers"
	RulesName         = "readygate-rules"

	ReservedGatesName = "readygate-reserved-gates"
)

// The label of every policy and binding of Readygate.
const (
	PartOfLabel = "app.kubernetes.io/part-of"
	PartOf      = "readygate"
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{PartOfLabel: PartOf}}
}

// IsOurs reports whether a policy or binding was installed by Readygate.
func IsOurs(obj metav1.Object) bool { return obj.GetLabels()[PartOfLabel] == PartOf }

// TaintNewNodesPolicy is the policy for new nodes as an administrator installs it: it has no effect until the manager adds
// the rules.
func TaintNewNodesPolicy() *admissionv1.MutatingAdmissionPolicy {
	return mutating(TaintNewNodesName, TaintNewNodesSpec(Compiled{}))
}

// TaintNewNodesBinding binds the policy for new nodes. It limits the policy to one resource, whatever the policy contains:
// the manager may write the policy, and not the binding.
func TaintNewNodesBinding() *admissionv1.MutatingAdmissionPolicyBinding {
	return mutatingBinding(TaintNewNodesName, nil, nodesOnly(admissionv1.Create, admissionv1.Update))
}

// nodesOnly matches requests of these kinds for nodes and for none of their subresources.
func nodesOnly(operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	return match("", "v1", []string{"nodes"}, operations...)
}

// match matches requests for resources. It sets every field that the API server would default, so that the stored object
// can be compared with this one.
func match(group, version string, resources []string, operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		MatchPolicy:       ptr.To(admissionv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector:    &metav1.LabelSelector{},
		ResourceRules:     []admissionv1.NamedRuleWithOperations{resourceRule(group, version, resources, operations...)},
	}
}

func resourceRule(group, version string, resources []string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups:   []string{group},
			APIVersions: []string{version},
			Resources:   resources,
			Scope:       ptr.To(admissionv1.AllScopes),
		},
	}}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

func validating(name string, onFailure admissionv1.FailurePolicyType, spec admissionv1.ValidatingAdmissionPolicySpec) *admissionv1.ValidatingAdmissionPolicy {
	spec.FailurePolicy = &onFailure
	return &admissionv1.ValidatingAdmissionPolicy{TypeMeta: typeMeta("ValidatingAdmissionPolicy"), ObjectMeta: meta(name), Spec: spec}
}

func mutating(name string, spec admissionv1.MutatingAdmissionPolicySpec) *admissionv1.MutatingAdmissionPolicy {
	return &admissionv1.MutatingAdmissionPolicy{TypeMeta: typeMeta("MutatingAdmissionPolicy"), ObjectMeta: meta(name), Spec: spec}
}

// mutatingBinding binds a mutating policy for these resources, with params unless they are nil.
func mutatingBinding(name string, params *admissionv1.ParamRef, resources *admissionv1.MatchResources) *admissionv1.MutatingAdmissionPolicyBinding {
	return &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("MutatingAdmissionPolicyBinding"),
		ObjectMeta: meta(name),
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name, ParamRef: params, MatchResources: resources},
	}
}

// binding binds a validating policy.
func binding(name string, actions ...admissionv1.ValidationAction) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: meta(name),
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: actions},
	}
}
