package lint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

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

// generated says that the API server makes the name.
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

// Objects are the objects of a file, those of lists one by one. What cannot be read is an error.
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
		for _, text := range jsonIn(text) {
			all = append(all, r.objectsIn(input.File, text)...)
		}
	}
}

// objectsIn are the objects of one YAML document: none, one, or those of a list.
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
	case []any: // a patch, or a part of something
		r.add(Info, in, "", "is no Kubernetes object, and was not looked at", "")
		return nil
	default:
		r.add(Warning, in, "", "is text and no Kubernetes object", "is it the right file, or did the command fail that was to make it?")
		return nil
	}
	if twice != nil && in.GetKind() != "" {
		r.add(Error, in, "", "has a field twice: "+inOneLine(twice), "keep one of the two")
	}
	return r.flatten(in)
}

// checkEmpty warns of a file that says nothing: what should have made it may have failed.
func (r *Report) checkEmpty(input Input, objects, findings int) {
	if objects == 0 && len(r.Findings) == findings {
		r.add(Warning, document{file: input.File}, "", "has no objects", "is it the right file, or did the command fail that was to make it?")
	}
}
