package lint

import (
	"fmt"
	"slices"
	"strings"
)

const listKind = "List"

// flatten are the objects of a list, of lists in it too, or the object itself if it is none.
func (r *Report) flatten(d document) []document {
	if !r.identified(d) {
		return nil
	}
	items, isList := d.Object["items"].([]any)
	switch own := slices.Contains([]string{listKind, ruleKind + listKind, podRuleKind + listKind}, d.GetKind()); {
	case !isList && !own:
		return []document{d}
	case !isList && d.Object["items"] != nil:
		r.add(Error, d, "items", "is no list", "write every object of it as an item: - apiVersion: …")
	}
	var all []document
	for i, item := range items {
		object, isObject := item.(map[string]any)
		if !isObject {
			r.add(Error, d, fmt.Sprintf("items[%d]", i), "is no Kubernetes object", "correct it, or leave it out")
			continue
		}
		of := document{file: d.file}
		of.Object = object
		of.inherit(d)
		all = append(all, r.flatten(of)...)
	}
	return all
}

// inherit gives an item the version and kind that a list of one kind says for all of them.
func (d *document) inherit(list document) {
	kind, ofOne := strings.CutSuffix(list.GetKind(), listKind)
	if !ofOne || kind == "" {
		return
	}
	if d.GetKind() == "" {
		d.SetKind(kind)
	}
	if d.GetAPIVersion() == "" {
		d.SetAPIVersion(list.GetAPIVersion())
	}
}
