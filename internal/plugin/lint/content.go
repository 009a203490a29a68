package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Content whose aliases expand to more than growth times its text plus headroom is an error: a few lines can expand to
// gigabytes.
const (
	growth   = 4
	headroom = 16 << 20
)

var (
	errMore   = errors.New("has more content after its first object, which kubectl does not read")
	errLarger = errors.New("becomes too large when its aliases (*name) are expanded")
)

// jsonIn returns the concatenated JSON objects of a text; the text itself if it is not JSON.
func jsonIn(text []byte) [][]byte {
	if !utilyaml.IsJSONBuffer(text) {
		return [][]byte{text}
	}
	var all [][]byte
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var object json.RawMessage
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return [][]byte{text}
		}
		all = append(all, object)
	}
}

// decode decodes one YAML document or JSON object. Whole numbers stay integers, as in the API server. A duplicate field
// is reported in twice, not in err.
func decode(text []byte) (content any, twice, err error) {
	if err := checkText(text); err != nil {
		return nil, nil, err
	}
	data, twice := yaml.YAMLToJSONStrict(text)
	if twice != nil {
		if data, err = yaml.YAMLToJSON(text); err != nil {
			return nil, twice, err
		}
	}
	err = utiljson.Unmarshal(data, &content)
	return content, twice, err
}

// checkText checks a document before its aliases are expanded.
func checkText(text []byte) error {
	if json.Valid(text) {
		return nil // has no aliases, and no content after it
	}
	decoder := goyaml.NewDecoder(bytes.NewReader(text))
	var content, more goyaml.Node
	err := decoder.Decode(&content)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	limit := growth*len(text) + headroom
	if (&measure{limit: limit, known: map[*goyaml.Node]int{}}).size(&content) > limit {
		return errLarger
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}

// measure computes the expanded size of content, and stops at the limit.
type measure struct {
	limit int
	known map[*goyaml.Node]int // sizes of anchored nodes, which precede their aliases
}

func (m *measure) size(node *goyaml.Node) int {
	if node.Kind == goyaml.AliasNode {
		return 1 + m.known[node.Alias]
	}
	sum := 1 + len(node.Value)
	for _, child := range node.Content {
		if sum += m.size(child); sum > m.limit {
			break
		}
	}
	if node.Anchor != "" {
		m.known[node] = sum
	}
	return sum
}

// cannotRead adds a finding for a document that cannot be parsed.
func (r *Report) cannotRead(in document, text []byte, err error) {
	switch {
	case errors.Is(err, errMore):
		r.add(Error, in, "", err.Error(), "put a line --- between objects")
	case errors.Is(err, errLarger):
		r.add(Error, in, "", err.Error(), fmt.Sprintf("write it without aliases; the limit is %d times the text plus %d MiB", growth, headroom>>20))
	case bytes.Contains(text, []byte("{{")):
		r.add(Error, in, "", "is not valid YAML: "+inOneLine(err), "this looks like a template: render it first, for example helm template . | kubectl readiness lint -f -")
	default:
		r.add(Error, in, "", "is not valid YAML: "+inOneLine(err), "")
	}
}

// inOneLine returns an error of the YAML library in one line.
func inOneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:")
	return strings.Join(strings.Fields(text), " ")
}
