package admission_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/readygate/readygate/internal/core/admission"
)

// Every release adds to the language and sometimes takes something away.
func TestPoliciesCompileOnEveryAPIServer(t *testing.T) {
	newest := environment.DefaultCompatibilityVersion().OffsetMinor(1)
	filled := admission.TaintNewNodesSpec(taintNewNodes(goldenRules()...))
	for language := oldestForValidating; !newest.LessThan(language); language = language.OffsetMinor(1) {
		for _, object := range everyObject() {
			if p, ok := object.(*admissionv1.ValidatingAdmissionPolicy); ok {
				newValidatorFor(t, language, p.Spec)
			}
		}
		if !language.LessThan(oldestForMutating) {
			newMutatorFor(t, language, filled)
		}
	}
}
