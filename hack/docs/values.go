package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const valuesIntro = `<!-- Generated from charts/readygate/values.yaml and values.schema.json by make generate. Do not edit. -->
# Chart values

Which values does the chart take, and what are their defaults? The chart rejects every other value, and the error names it.
`

// schema is what the page shows of values.schema.json.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	Enum       []any              `json:"enum"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
}

// chartValues is the page of the chart's values: one section per value of the first level.
func chartValues(chart string) (string, error) {
	var document yaml.Node
	var root schema
	data, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &document)
	}
	if err != nil {
		return "", err
	}
	if data, err = os.ReadFile(filepath.Join(chart, "values.schema.json")); err == nil {
		err = json.Unmarshal(data, &root)
	}
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(valuesIntro)
	top := document.Content[0].Content
	for i := 0; i < len(top); i += 2 {
		key, value := top[i], top[i+1]
		fmt.Fprintf(&text, "\n## %s\n\n%s", key.Value, comment(key))
		if isLeaf(value) {
			fmt.Fprintf(&text, "- `%s` (%s)\n", key.Value, defaultOf(value))
			continue
		}
		list(&text, key.Value, value, root.Properties[key.Value])
	}
	return text.String(), nil
}

// list writes one entry per value below a mapping.
func list(text *strings.Builder, prefix string, mapping *yaml.Node, s *schema) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + "." + key.Value
		var of *schema
		if s != nil {
			of = s.Properties[key.Value]
		}
		about := strings.TrimSpace(strings.ReplaceAll(comment(key), "\n\n", " "))
		if isLeaf(value) {
			about = strings.TrimSpace(fmt.Sprintf("(%s%s) %s", defaultOf(value), of.limits(), about))
		}
		if about != "" {
			fmt.Fprintf(text, "- `%s` %s\n", name, about)
		}
		if !isLeaf(value) {
			list(text, name, value, of)
		}
	}
}

func isLeaf(value *yaml.Node) bool { return value.Kind != yaml.MappingNode || len(value.Content) == 0 }

// defaultOf is the default of a value, in the form of JSON if it is a list or a mapping.
func defaultOf(value *yaml.Node) string {
	if value.Kind == yaml.ScalarNode && value.Tag != "!!str" {
		return "`" + value.Value + "`"
	}
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return ""
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return ""
	}
	return "`" + string(encoded) + "`"
}

// limits are the values that the schema allows.
func (s *schema) limits() string {
	switch {
	case s == nil:
		return ""
	case len(s.Enum) > 0:
		var names []string
		for _, value := range s.Enum {
			names = append(names, fmt.Sprintf("`%v`", value))
		}
		slices.Sort(names)
		return "; one of " + strings.Join(slices.Compact(names), ", ")
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("; %v to %v", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("; at least %v", *s.Minimum)
	}
	return ""
}

// example matches the start of a commented example: a key alone on its line.
var example = regexp.MustCompile(`^\w+:(\n|$)`)

// comment is the comment above a key as paragraphs. An example becomes a block.
func comment(key *yaml.Node) string {
	var text strings.Builder
	lines := strings.Split(key.HeadComment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "), "-- ")
	}
	for paragraph := range strings.SplitSeq(strings.Join(lines, "\n"), "\n\n") {
		switch {
		case example.MatchString(paragraph):
			fmt.Fprintf(&text, "```yaml\n%s\n```\n\n", paragraph)
		case paragraph != "":
			fmt.Fprintf(&text, "%s\n\n", strings.NewReplacer("\n", " ", "<", "\\<").Replace(paragraph))
		}
	}
	return text.String()
}
