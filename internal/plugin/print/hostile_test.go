package print_test

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

// hostile clears the screen, sets the title, rings the bell, moves the cursor back, changes the reading direction and
// forges a line, with 7-bit and 8-bit control characters.
const hostile = "x\x1b[2J\x1b]0;owned\x07\x08\r\nforged line\t\u009b31m\u202e\u2028\x7f\x9b"

// fill puts the hostile text into every string of a value, and one element into every list.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(hostile).Convert(v.Type().Key()), reflect.ValueOf(1).Convert(v.Type().Elem()))
	case reflect.Bool:
		v.SetBool(true)
	}
}

func filled[T any]() T {
	var value T
	fill(reflect.ValueOf(&value).Elem())
	return value
}

// All text of a cluster or a file passes this package, so none of it may control the terminal.
func TestHostileTextsArePrintedWithoutControlCharacters(t *testing.T) {
	report := &lint.Report{Findings: []lint.Finding{filled[lint.Finding]()}}
	for name, lines := range map[string]print.Lines{
		"rules":           print.Rules([]view.Rule{filled[view.Rule]()}, true, noon),
		"nodes":           print.Nodes([]view.Node{filled[view.Node]()}, true, noon),
		"change":          {print.Change(filled[view.Node](), noon), print.Gone(hostile, noon)},
		"explanation":     print.Explanation(filled[view.Explanation](), noon),
		"pods":            print.Pods(filled[view.Pods](), true, noon),
		"pod explanation": print.PodExplanation(filled[view.PodExplanation](), noon),
		"simulation":      print.Simulation(filled[view.Simulation](), true),
		"findings":        print.Findings(report),
	} {
		if !strings.Contains(strings.Join(lines, ""), "forged line") {
			t.Errorf("%s: the text is not shown at all, so nothing is tested", name)
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "forged line") {
				t.Errorf("%s: a line is forged", name)
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' {
					t.Errorf("%s: %U in %q", name, r, line)
				}
			}
		}
	}
}
