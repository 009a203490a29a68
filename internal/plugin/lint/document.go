package lint

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Input is the content of one file.
type Input struct {
	File string
	Data []byte
}

// document is one object of a file.
type document struct {
	file string
	unstructured.Unstructured
}

// generated reports whether the API server generates the name.
func (d document) generated() bool { return d.GetName() == "" && d.GetGenerateName() != "" }

func (d document) name() string {
	name := d.GetName()
	if d.generated() {
		name = d.GetGenerateName() + "…"
	}
	if d.GetKind() == "" {
		return name
	}
	return d.GetKind() + "/" + name
}

// Objects returns the objects of a file, with lists flattened. Content that cannot be parsed is an error.
func Objects(input Input) ([]unstructured.Unstructured, error) {
	var report Report
	var objects []unstructured.Unstructured
	for _, d := range report.documents(input) {
		objects = append(objects, d.Unstructured)
	}
	for _, f := range report.Findings {
		if f.Severity == Error {
			return nil, fmt.Errorf("%s: %s", input.File, f.Message)
		}
	}
	return objects, nil
}

// documents splits a file into its objects, and adds findings for content that cannot be parsed.
func (r *Report) documents(input Input) []document {
	var all []document
	in := document{file: input.File}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(input.Data)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			r.add(Error, in, "", "cannot be read: "+err.Error(), "")
			return all
		}
		for _, text := range jsonIn(text) {
			all = append(all, r.objectsIn(input.File, text)...)
		}
	}
}

// objectsIn returns the objects of one YAML document: none, one, or the items of a list.
func (r *Report) objectsIn(file string, text []byte) []document {
	in := document{file: file}
	content, twice, err := decode(text)
	if err != nil {
		r.cannotRead(in, text, err)
		return nil
	}
	switch content := content.(type) {
	case nil:
		return nil // comments only
	case map[string]any:
		in.Object = content
	case []any: // e.g. a JSON patch
		r.add(Info, in, "", "is not a Kubernetes object and was skipped", "")
		return nil
	default:
		r.add(Warning, in, "", "is text, not a Kubernetes object", "is it the right file, or did the command that writes it fail?")
		return nil
	}
	if twice != nil && in.GetKind() != "" {
		r.add(Error, in, "", "has a duplicate field: "+inOneLine(twice), "keep one of the two")
	}
	return r.flatten(in)
}

const listKind = "List"

// flatten returns the items of a list, recursively, or the object itself if it is not a list.
func (r *Report) flatten(d document) []document {
	if !r.identified(d) {
		return nil
	}
	items, isList := d.Object["items"].([]any)
	switch own := slices.Contains([]string{listKind, ruleKind + listKind, podRuleKind + listKind}, d.GetKind()); {
	case !isList && !own:
		return []document{d}
	case !isList && d.Object["items"] != nil:
		r.add(Error, d, "items", "is not a list", "write each object as an item: - apiVersion: …")
	}
	kind, ofOne := strings.CutSuffix(d.GetKind(), listKind)
	var all []document
	for i, item := range items {
		object, isObject := item.(map[string]any)
		if !isObject {
			r.add(Error, d, fmt.Sprintf("items[%d]", i), "is not a Kubernetes object", "correct it or remove it")
			continue
		}
		of := document{file: d.file}
		of.Object = object
		if ofOne && kind != "" { // a typed list implies kind and apiVersion of its items
			of.SetKind(cmp.Or(of.GetKind(), kind))
			of.SetAPIVersion(cmp.Or(of.GetAPIVersion(), d.GetAPIVersion()))
		}
		all = append(all, r.flatten(of)...)
	}
	return all
}
