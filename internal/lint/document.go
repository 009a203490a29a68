package lint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
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

func (d document) name() string {
	name := d.GetName()
	if name == "" {
		name = d.GetGenerateName()
	}
	if d.GetKind() == "" {
		return name
	}
	return d.GetKind() + "/" + name
}

// Objects are the objects of a file, those of lists one by one. What cannot be read is an error.
func Objects(input Input) ([]unstructured.Unstructured, error) {
	var report Report
	var objects []unstructured.Unstructured
	for _, d := range report.documents(input) {
		objects = append(objects, d.Unstructured)
	}
	if i := report.Count(Error); i > 0 {
		return nil, fmt.Errorf("%s: %s", input.File, report.Findings[0].Message)
	}
	return objects, nil
}

// documents splits a file into its objects, and notes what cannot be read.
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
		all = append(all, r.objectsIn(input.File, text)...)
	}
}

// objectsIn are the objects of one YAML document: none, one, or those of a list.
func (r *Report) objectsIn(file string, text []byte) []document {
	in := document{file: file}
	var content any
	if err := yaml.Unmarshal(text, &content); err != nil {
		r.add(Error, in, "", "is no YAML: "+inOneLine(err), "")
		return nil
	}
	object, isObject := content.(map[string]any)
	switch {
	case content == nil:
		return nil // comments only
	case !isObject:
		r.add(Info, in, "", "is no Kubernetes object, and was not looked at", "")
		return nil
	}
	in.Object = object
	if in.GetKind() == "" || in.GetAPIVersion() == "" {
		r.add(Warning, in, "", "has no apiVersion or no kind, and was not looked at", "write both, or leave the file out: kubectl apply would refuse it")
		return nil
	}
	if err := yaml.UnmarshalStrict(text, &map[string]any{}); err != nil {
		r.add(Error, in, "", "has a field twice: "+inOneLine(err), "keep one of the two")
	}
	if !in.IsList() {
		return []document{in}
	}
	var items []document
	_ = in.EachListItem(func(item runtime.Object) error {
		items = append(items, document{file: file, Unstructured: *item.(*unstructured.Unstructured)})
		return nil
	})
	return items
}

// inOneLine is the text of an error of the YAML library, which likes several.
func inOneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:")
	return strings.Join(strings.Fields(text), " ")
}
