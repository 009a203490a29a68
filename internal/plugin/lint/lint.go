package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// Report is the result of linting manifests.
type Report struct {
	Findings []Finding `json:"findings"`
	// Rules are the NodeReadinessRules that the API server would accept, in the order of the files.
	Rules []*v1alpha1.NodeReadinessRule `json:"-"`
	// PodRules are the PodReadinessRules that the API server would accept, in the order of the files.
	PodRules []*podv1alpha1.PodReadinessRule `json:"-"`
	// Objects is the number of checked objects of all kinds, and Judged the number of rules among them.
	Objects int `json:"objects"`
	Judged  int `json:"rules"`

	places    map[types.UID]document // of each rule
	podPlaces []document             // of each rule of pods
	nodes     int
}

// DefaultNodes is the default number of nodes for cost estimates.
const DefaultNodes = 1000

// The kinds of rules.
const (
	ruleKind    = "NodeReadinessRule"
	podRuleKind = "PodReadinessRule"
)

// Check lints all files together, because rules of different files can conflict. Costs are estimated for this number of
// nodes.
func Check(inputs []Input, nodes int) (*Report, error) {
	definition, err := ruleDefinition()
	if err != nil {
		return nil, fmt.Errorf("reading the CRD of NodeReadinessRule: %w", err)
	}
	r := &Report{Findings: []Finding{}, places: map[types.UID]document{}, nodes: nodes}
	var others []document
	for _, input := range inputs {
		findings, objects := len(r.Findings), r.documents(input)
		if len(objects) == 0 && len(r.Findings) == findings { // the command that writes the file may have failed
			r.add(Warning, document{file: input.File}, "", "has no objects", "is it the right file, or did the command that writes it fail?")
		}
		for _, d := range objects {
			r.Objects++
			switch {
			case d.GetKind() == ruleKind:
				r.Judged++
				if r.judge(definition, d, v1alpha1.GroupVersion) {
					r.keep(d)
				}
			case d.GetKind() == podRuleKind:
				r.Judged++
				definition, err := podRuleDefinition()
				if err != nil {
					return nil, fmt.Errorf("reading the CRD of PodReadinessRule: %w", err)
				}
				rule := &podv1alpha1.PodReadinessRule{}
				if r.judge(definition, d, podv1alpha1.GroupVersion) && r.read(d, rule) {
					r.PodRules, r.podPlaces = append(r.PodRules, rule), append(r.podPlaces, d)
				}
			case !r.strayKind(d):
				others = append(others, d)
			}
		}
	}
	r.checkTogether()
	r.checkPodRules()
	r.checkWorkloads(others)
	r.sort(inputs)
	return r, nil
}

// judge reports whether the API server would accept an object, and adds findings if not.
func (r *Report) judge(definition *definition, d document, version schema.GroupVersion) bool {
	if got, want := d.GetAPIVersion(), version.String(); got != want {
		r.add(Error, d, "apiVersion", fmt.Sprintf("is %q, which is not a version of %s", got, d.GetKind()), "use "+want)
		return false
	}
	errors := r.Count(Error)
	unknown, bad := definition.unknown(d.Object)
	if bad != nil {
		r.refuse(d, field.ErrorList{bad})
		return false
	}
	for _, path := range unknown {
		r.add(Error, d, path, "is not a field of this kind: the API server rejects or drops it", "correct its name or its indentation; docs/reference/api.md lists all fields")
	}
	delete(d.Object, "status") // the API server ignores it here
	named := d.named()
	r.refuse(d, append(checkMeta(named), definition.validate(named.Object, nil)...))
	return r.Count(Error) == errors
}

// refuse adds the API server's validation errors as findings.
func (r *Report) refuse(d document, errs field.ErrorList) {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	for _, err := range errs {
		do := ""
		switch {
		case strings.Contains(err.Detail, "must be of type string") && unquoted(err.BadValue):
			do = `quote the value, for example "on": without quotes, YAML does not read on, yes, true or 1 as a string`
		case err.Type != field.ErrorTypeInvalid: // messages of CEL rules contain the next step
			do = explain(cmp.Or(d.GetKind(), ruleKind), err.Field)
		}
		r.add(Error, d, err.Field, strings.ReplaceAll(err.ErrorBody(), err.Field+" in body ", ""), do)
	}
}

// unquoted reports whether YAML reads the value as a type other than string without quotes. The value is the name of
// that type.
func unquoted(value any) bool { return value == "boolean" || value == "integer" || value == "number" }

// keep converts the object to a rule. Rules get creation times in the order of the files, because they are applied in
// that order.
func (r *Report) keep(d document) {
	rule := &v1alpha1.NodeReadinessRule{}
	if !r.read(d, rule) {
		return
	}
	if d.generated() {
		rule.Name = r.unusedName(rule.GenerateName)
	}
	rule.UID = types.UID(fmt.Sprintf("given-%06d", len(r.Rules)))
	rule.CreationTimestamp = metav1.NewTime(time.Unix(int64(len(r.Rules)), 0))
	r.Rules = append(r.Rules, rule)
	r.places[rule.UID] = d
}

// read converts the object to its kind, and reports whether that is possible.
func (r *Report) read(d document, into any) bool {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, into); err != nil {
		r.add(Error, d, "", "cannot be read: "+err.Error(), "")
		return false
	}
	if d.generated() {
		r.add(Info, d, "metadata.generateName", "kubectl apply does not support generateName; use kubectl create", "")
	}
	return true
}

// Change returns the API server's errors for changing a rule into another rule of the same name.
func Change(former, rule *v1alpha1.NodeReadinessRule) ([]Finding, error) {
	definition, err := ruleDefinition()
	if err != nil {
		return nil, err
	}
	var states [2]map[string]any
	for i, state := range []*v1alpha1.NodeReadinessRule{former, rule} {
		plain := &v1alpha1.NodeReadinessRule{Spec: state.Spec}
		plain.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(ruleKind))
		plain.Name = state.Name
		if states[i], err = runtime.DefaultUnstructuredConverter.ToUnstructured(plain); err != nil {
			return nil, err
		}
		delete(states[i], "status")
	}
	var r Report
	r.refuse(document{}, definition.validate(states[1], states[0]))
	for i := range r.Findings {
		r.Findings[i].Object = ruleKind + "/" + rule.Name
	}
	return r.Findings, nil
}
