package noderule

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

var (
	effects  = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	statuses = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	modes    = []v1alpha1.EnforcementMode{v1alpha1.EnforcementModeBootstrapOnly, v1alpha1.EnforcementModeContinuous}
	policies = []v1alpha1.ConditionPolicy{"", v1alpha1.ConditionPolicyAllOf, v1alpha1.ConditionPolicyAnyOf}
)

// validate returns the errors that make a spec impossible to enforce. The CRD rejects all of them except malformed keys in
// matchLabels (keys of unbounded length exceed the cost limit of CEL); the others occur in rules that were stored under
// another CRD of the same API.
func validate(spec *v1alpha1.NodeReadinessRuleSpec) (labels.Selector, field.ErrorList) {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if len(spec.Conditions) == 0 {
		errs = append(errs, field.Required(path.Child("conditions"), "name at least one node condition"))
	}
	for i, c := range spec.Conditions {
		at := path.Child("conditions").Index(i)
		if !slices.Contains(statuses, c.RequiredStatus) {
			errs = append(errs, field.NotSupported(at.Child("requiredStatus"), c.RequiredStatus, statuses))
		}
		if c.DefaultStatus != "" && !slices.Contains(statuses, c.DefaultStatus) {
			errs = append(errs, field.NotSupported(at.Child("defaultStatus"), c.DefaultStatus, statuses))
		}
	}
	if !slices.Contains(modes, spec.EnforcementMode) {
		errs = append(errs, field.NotSupported(path.Child("enforcementMode"), spec.EnforcementMode, modes))
	}
	if !slices.Contains(policies, spec.ConditionPolicy) {
		errs = append(errs, field.NotSupported(path.Child("conditionPolicy"), spec.ConditionPolicy, policies))
	}
	errs = append(errs, validateTaint(path.Child("taint"), &spec.Taint)...)
	selector, selectorErrs := compileSelector(path.Child("nodeSelector"), &spec.NodeSelector)
	return selector, append(errs, selectorErrs...)
}

func validateTaint(path *field.Path, taint *v1alpha1.Taint) field.ErrorList {
	var errs field.ErrorList
	if !(TaintID{Key: taint.Key}).managed() {
		errs = append(errs, field.Invalid(path.Child("key"), taint.Key, "must start with "+strings.Join(v1alpha1.TaintPrefixes, " or ")))
	}
	for _, msg := range validation.IsQualifiedName(taint.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), taint.Key, msg))
	}
	for _, msg := range validation.IsValidLabelValue(taint.Value) {
		errs = append(errs, field.Invalid(path.Child("value"), taint.Value, msg))
	}
	if !slices.Contains(effects, taint.Effect) {
		errs = append(errs, field.NotSupported(path.Child("effect"), taint.Effect, effects))
	}
	return errs
}

// compileSelector parses the selector. An empty one is an error: it would select every node.
func compileSelector(path *field.Path, s *v1alpha1.NodeSelector) (labels.Selector, field.ErrorList) {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return nil, field.ErrorList{field.Required(path, "name at least one label")}
	}
	var errs field.ErrorList
	selector := labels.NewSelector()
	add := func(at *field.Path, key string, op selection.Operator, values []v1alpha1.LabelValue) {
		plain, bad := validateLabel(at, key, values)
		if len(bad) == 0 {
			requirement, err := labels.NewRequirement(key, op, plain)
			if err != nil {
				bad = field.ErrorList{field.Invalid(at, key, err.Error())}
			} else {
				selector = selector.Add(*requirement)
			}
		}
		errs = append(errs, bad...)
	}
	for key, value := range s.MatchLabels {
		add(path.Child("matchLabels").Key(key), key, selection.Equals, []v1alpha1.LabelValue{value})
	}
	for i, e := range s.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		op, ok := operators[string(e.Operator)]
		if !ok {
			errs = append(errs, field.NotSupported(at.Child("operator"), string(e.Operator), []string{"In", "NotIn", "Exists", "DoesNotExist"}))
			continue
		}
		add(at, e.Key, op, e.Values)
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return selector, errs
}

// validateLabel returns the values as plain strings.
func validateLabel(at *field.Path, key string, values []v1alpha1.LabelValue) ([]string, field.ErrorList) {
	var errs field.ErrorList
	for _, msg := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(at, key, "label key: "+msg))
	}
	plain := make([]string, len(values))
	for i, v := range values {
		plain[i] = string(v)
		for _, msg := range validation.IsValidLabelValue(plain[i]) {
			errs = append(errs, field.Invalid(at, plain[i], "label value: "+msg))
		}
	}
	return plain, errs
}

var operators = map[string]selection.Operator{
	"In":           selection.In,
	"NotIn":        selection.NotIn,
	"Exists":       selection.Exists,
	"DoesNotExist": selection.DoesNotExist,
}
