package scenario

import (
	"bytes"
	"cmp"
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Example is a valid scenario.
const Example = `title: A node joins
about: A node is held until its network is ready.
components:
  network: {condition: example.com/NetworkReady}
steps:
- join: {name: worker, labels: {example.com/pool: workers}}
- component: {name: network, nodes: [worker], is: up}
- expect: {released: all, within: 30s}
`

// Parse reads a scenario. An error names the invalid field and a valid value.
func Parse(data []byte) (*Scenario, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("the file is empty; a valid one:\n%s", Example)
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("the file is not YAML: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	var s Scenario
	unknown, err := json.UnmarshalStrict(asJSON, &s)
	if err != nil {
		return nil, inWords(err)
	}
	for _, one := range unknown {
		return nil, unknownInWords(one)
	}
	return &s, s.validate()
}

// inWords replaces the names of Go types in an error of the decoder by those of YAML.
func inWords(err error) error {
	var mismatch *gojson.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	want := map[reflect.Kind]string{
		reflect.Slice: "a list", reflect.Struct: "an object", reflect.Pointer: "an object", reflect.Map: "an object with string values",
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Int: "an integer",
	}[mismatch.Type.Kind()]
	return fmt.Errorf("%s is %s, must be %s", cmp.Or(mismatch.Field, "the file"), mismatch.Value, want)
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// unknownInWords adds the valid field names to an error about an unknown field.
func unknownInWords(err error) error {
	found := unknownField.FindStringSubmatch(err.Error())
	if found == nil {
		return err // a duplicate field
	}
	place, name := "", found[1]
	if dot := strings.LastIndex(name, "."); dot >= 0 {
		place, name = name[:dot], name[dot+1:]
	}
	return fmt.Errorf("%s has no field %q, must be one of %s", cmp.Or(place, "the file"), name, strings.Join(fieldsAt(place), ", "))
}

// fieldsAt returns the names of the fields at a path, e.g. steps[2].join.
func fieldsAt(place string) []string {
	at := reflect.TypeFor[Scenario]()
	for part := range strings.SplitSeq(place, ".") {
		name, _, _ := strings.Cut(part, "[")
		switch at.Kind() {
		case reflect.Map:
			at = at.Elem() // the part is a key of the map
		case reflect.Struct:
			if field, found := at.FieldByNameFunc(func(other string) bool { return strings.EqualFold(other, name) }); found {
				at = field.Type
			}
		}
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
			at = at.Elem()
		}
	}
	var names []string
	if at.Kind() == reflect.Struct {
		for _, field := range reflect.VisibleFields(at) {
			names = append(names, jsonName(field))
		}
	}
	return names
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
