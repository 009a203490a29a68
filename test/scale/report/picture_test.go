package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/readygate/readygate/test/scale/report"
)

var pictures = map[string]func(report.Run) []byte{"growth": report.Growth, "ratios": report.Ratios}

// label is a text of a picture.
type label struct {
	text                string
	x, y, size          float64
	anchor              string
	left, right, top, b float64
}

// read parses a picture, and returns its texts and its size.
func read(t *testing.T, picture []byte) (labels []label, width, height float64, elements []string) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	var current *label
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return labels, width, height, elements
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements = append(elements, token.Name.Local)
			attr := func(name string) string {
				for _, a := range token.Attr {
					if a.Name.Local == name {
						return a.Value
					}
				}
				return ""
			}
			value := func(name string) float64 {
				v, _ := strconv.ParseFloat(attr(name), 64)
				return v
			}
			switch token.Name.Local {
			case "svg":
				width, height = value("width"), value("height")
			case "text":
				labels = append(labels, label{x: value("x"), y: value("y"), size: value("font-size"), anchor: attr("text-anchor")})
				current = &labels[len(labels)-1]
			}
		case xml.CharData:
			if current != nil {
				current.text += string(token)
			}
		case xml.EndElement:
			if current != nil {
				current.measure()
			}
			current = nil
		}
	}
}

// measure is generous to no text: half an em a character is what sans-serif has on average.
func (l *label) measure() {
	width := 0.5 * l.size * float64(len([]rune(l.text)))
	l.left = l.x
	switch l.anchor {
	case "middle":
		l.left -= width / 2
	case "end":
		l.left -= width
	}
	l.right, l.top, l.b = l.left+width, l.y-0.7*l.size, l.y
}

func (l *label) meets(o label) bool {
	return l.left < o.right && o.left < l.right && l.top < o.b && o.top < l.b
}

// runs are worlds that pictures must survive.
func runs(t *testing.T) map[string]report.Run {
	long := madeUp(t)
	for i := range long.Results {
		if long.Results[i].Subject == "other" {
			long.Results[i].Subject = `a controller with <quite> a "long" name & more`
		}
	}
	near := madeUp(t)
	for i := range near.Results {
		if r := &near.Results[i]; r.Subject == "other" {
			for j := range r.Phases {
				r.Phases[j].Took /= 40
				r.Phases[j].CPU /= 20
			}
		}
	}
	few := madeUp(t)
	few.Results = slices.DeleteFunc(few.Results, func(r report.Result) bool { return r.Nodes != 1000 })
	large := madeUp(t)
	for _, r := range slices.Clone(large.Results) {
		if r.Scenario == report.Flip && r.Nodes == 5000 && r.Subject != "other" {
			r.Nodes = 15000
			large.Results = append(large.Results, r)
		}
	}
	return map[string]report.Run{
		"a whole run": madeUp(t), "a long name": long, "another as good": near, "one size": few, "15,000 nodes": large, "nothing": {},
	}
}

func TestPicturesAreWellFormedAndSayWhatTheyShow(t *testing.T) {
	for name, run := range runs(t) {
		for kind, draw := range pictures {
			_, width, height, elements := read(t, draw(run))
			if width == 0 || height == 0 || !slices.Contains(elements, "title") || !slices.Contains(elements, "desc") {
				t.Errorf("%s of %s: %v × %v with %v", kind, name, width, height, slices.Compact(elements))
			}
		}
	}
}

func TestPicturesNameEverySubject(t *testing.T) {
	run := madeUp(t)
	for kind, draw := range pictures {
		labels, _, _, _ := read(t, draw(run))
		for _, subject := range []string{report.Ours, report.Floor, "other"} {
			if !slices.ContainsFunc(labels, func(l label) bool { return strings.Contains(l.text, subject) }) {
				t.Errorf("%s does not name %s", kind, subject)
			}
		}
	}
}

func TestTextsOfPicturesStayInsideAndApart(t *testing.T) {
	for name, run := range runs(t) {
		for kind, draw := range pictures {
			labels, width, height, _ := read(t, draw(run))
			for i, l := range labels {
				if l.left < 0 || l.right > width || l.top < 0 || l.b > height {
					t.Errorf("%s of %s: %q is outside", kind, name, l.text)
				}
				for _, other := range labels[:i] {
					if l.meets(other) {
						t.Errorf("%s of %s: %q is on %q", kind, name, l.text, other.text)
					}
				}
			}
		}
	}
}

func TestPicturesAreReadableInTheDark(t *testing.T) {
	for kind, draw := range pictures {
		if !bytes.Contains(draw(madeUp(t)), []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s is only light", kind)
		}
	}
}

func TestTheBudgetIsInThePictureOfRatios(t *testing.T) {
	labels, _, _, _ := read(t, report.Ratios(madeUp(t)))
	for _, want := range []string{"budget 1.2×", "budget 1.5×"} {
		if !slices.ContainsFunc(labels, func(l label) bool { return l.text == want }) {
			t.Errorf("%q is missing", want)
		}
	}
}
