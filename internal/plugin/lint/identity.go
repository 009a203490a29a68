package lint

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// identified says whether the object tells what it is. kubectl refuses one that does not; that
// is an error if it looks like a rule, and else it may not be meant for kubectl at all.
func (r *Report) identified(d document) bool {
	var missing []string
	if d.GetAPIVersion() == "" {
		missing = append(missing, "apiVersion")
	}
	if d.GetKind() == "" {
		missing = append(missing, "kind")
	}
	switch text := strings.Join(missing, " and no "); {
	case len(missing) == 0:
		return true
	case likeAPodRule(d):
		r.add(Error, d, "", "looks like a rule and has no "+text, fmt.Sprintf("write apiVersion: %s and kind: %s", podv1alpha1.GroupVersion, podRuleKind))
	case likeARule(d):
		r.add(Error, d, "", "looks like a rule and has no "+text, fmt.Sprintf("write apiVersion: %s and kind: %s", v1alpha1.GroupVersion, ruleKind))
	default:
		r.add(Warning, d, "", "has no "+text+", and was not looked at", "write both, or leave the file out: kubectl apply would refuse it")
	}
	return false
}

// likeARule says whether an object that does not tell what it is was meant to be a rule.
func likeARule(d document) bool {
	spec, _ := d.Object["spec"].(map[string]any)
	for _, field := range []string{"enforcementMode", "conditionPolicy", "taint"} {
		if spec[field] != nil {
			return true
		}
	}
	return groupOf(d) == v1alpha1.GroupVersion.Group || strings.EqualFold(d.GetKind(), ruleKind)
}

// likeAPodRule says whether an object that does not tell what it is was meant to be a rule of pods.
func likeAPodRule(d document) bool {
	return groupOf(d) == podv1alpha1.GroupVersion.Group || strings.EqualFold(d.GetKind(), podRuleKind)
}

// strayKind notes a kind that is none, though it was meant to be one of ours.
func (r *Report) strayKind(d document) bool {
	group, kind := v1alpha1.GroupVersion.Group, ruleKind
	switch {
	case likeAPodRule(d):
		group, kind = podv1alpha1.GroupVersion.Group, podRuleKind
	case groupOf(d) != group && !strings.EqualFold(d.GetKind(), kind):
		return false
	}
	r.add(Error, d, "kind", fmt.Sprintf("is %q, and there is no such kind in %s", d.GetKind(), group), "write "+kind)
	return true
}

func groupOf(d document) string {
	version, _ := schema.ParseGroupVersion(d.GetAPIVersion())
	return version.Group
}

func (d document) copy() document {
	return document{file: d.file, Unstructured: *d.DeepCopy()}
}

// named is the object with a name such as the API server makes, if it is to make one: it cuts
// what is too long, and adds five characters.
func (d document) named() document {
	if !d.generated() {
		return d
	}
	d = d.copy()
	prefix := d.GetGenerateName()
	d.SetName(prefix[:min(len(prefix), names.MaxGeneratedNameLength)] + "xxxxx")
	return d
}

// unusedName stands for a name that the API server will make: it is not that of another rule.
func (r *Report) unusedName(prefix string) string {
	name := prefix + "…"
	for n := 2; r.hasRule(name); n++ {
		name = fmt.Sprintf("%s…%d", prefix, n)
	}
	return name
}

func (r *Report) hasRule(name string) bool {
	for _, rule := range r.Rules {
		if rule.Name == name {
			return true
		}
	}
	return false
}
