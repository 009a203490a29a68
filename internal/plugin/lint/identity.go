package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// identified reports whether the object has apiVersion and kind. Without them, kubectl rejects it. This is an error if
// the object looks like a rule, else a warning: it may not be meant for kubectl.
func (r *Report) identified(d document) bool {
	var missing []string
	if d.GetAPIVersion() == "" {
		missing = append(missing, "apiVersion")
	}
	if d.GetKind() == "" {
		missing = append(missing, "kind")
	}
	text := strings.Join(missing, " and no ")
	if len(missing) == 0 {
		return true
	}
	if meant, isRule := meantKind(d, true); isRule {
		r.add(Error, d, "", "looks like a rule but has no "+text, fmt.Sprintf("set apiVersion: %s and kind: %s", meant.GroupVersion(), meant.Kind))
	} else {
		r.add(Warning, d, "", "has no "+text+" and was skipped", "set both, or remove the file: kubectl apply would reject it")
	}
	return false
}

// strayKind adds a finding if the kind does not exist but was meant to be a rule.
func (r *Report) strayKind(d document) bool {
	meant, isRule := meantKind(d, false)
	if isRule {
		r.add(Error, d, "kind", fmt.Sprintf("is %q, which is not a kind of %s", d.GetKind(), meant.Group), "use "+meant.Kind)
	}
	return isRule
}

// meantKind returns the kind of rule that an object was meant to be: by its API group, by its kind in another case and,
// with byFields, by its fields.
func meantKind(d document, byFields bool) (kind schema.GroupVersionKind, isRule bool) {
	for _, kind := range []schema.GroupVersionKind{podv1alpha1.GroupVersion.WithKind(podRuleKind), v1alpha1.GroupVersion.WithKind(ruleKind)} {
		if groupOf(d) == kind.Group || strings.EqualFold(d.GetKind(), kind.Kind) {
			return kind, true
		}
	}
	spec, _ := d.Object["spec"].(map[string]any)
	hasFields := spec["enforcementMode"] != nil || spec["conditionPolicy"] != nil || spec["taint"] != nil
	return v1alpha1.GroupVersion.WithKind(ruleKind), byFields && hasFields
}

func groupOf(d document) string {
	version, _ := schema.ParseGroupVersion(d.GetAPIVersion())
	return version.Group
}

func (d document) copy() document {
	return document{file: d.file, Unstructured: *d.DeepCopy()}
}

// named returns the object with a name as long as the one that the API server would generate: the cut prefix and five
// characters. The five characters are constant, so that lint prints the same text for the same file.
func (d document) named() document {
	if !d.generated() {
		return d
	}
	d = d.copy()
	prefix := d.GetGenerateName()
	d.SetName(prefix[:min(len(prefix), names.MaxGeneratedNameLength)] + "xxxxx")
	return d
}

// unusedName returns a placeholder for a generated name that no other rule has.
func (r *Report) unusedName(prefix string) string {
	name := prefix + "…"
	for n := 2; slices.ContainsFunc(r.Rules, func(rule *v1alpha1.NodeReadinessRule) bool { return rule.Name == name }); n++ {
		name = fmt.Sprintf("%s…%d", prefix, n)
	}
	return name
}
