package noderule

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// reach describes the nodes that a selector can match: each label that it names, and the possible values. Labels are
// independent of each other, so such a node can exist exactly if every label has a possible value. It is computed once per
// rule, because a rule is compared with every other rule with its taint.
type reach []possible

// possible are the possible states of one label: absent, or present with one of the values of in. If in is nil, every value
// is possible except those of not. Both are sorted.
type possible struct {
	key             string
	absent, present bool
	in, not         []string
}

func reachOf(requirements labels.Requirements) reach {
	var r reach
	for i := range requirements {
		if r.label(requirements[i].Key()) == &anything {
			r = append(r, possible{key: requirements[i].Key(), absent: true, present: true})
		}
		r.label(requirements[i].Key()).restrict(&requirements[i])
	}
	return r
}

// overlaps reports whether a node can match both selectors. The result is exact.
func (r reach) overlaps(other reach) bool { return r.fits(other) && other.fits(r) }

// fits reports whether every label that r names has a state that also matches the other selector.
func (r reach) fits(other reach) bool {
	for i := range r {
		if !r[i].shares(other.label(r[i].key)) {
			return false
		}
	}
	return true
}

func (r reach) label(key string) *possible {
	for i := range r {
		if r[i].key == key {
			return &r[i]
		}
	}
	return &anything
}

// anything is the state of a label that a selector does not name.
var anything = possible{absent: true, present: true}

func (p *possible) restrict(r *labels.Requirement) {
	values := r.ValuesUnsorted()
	slices.Sort(values)
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		p.absent = false
		if p.in == nil {
			p.in = slices.DeleteFunc(values, func(v string) bool { return isIn(p.not, v) })
		} else {
			p.in = slices.DeleteFunc(p.in, func(v string) bool { return !isIn(values, v) })
		}
	case selection.NotIn, selection.NotEquals:
		p.not = append(p.not, values...)
		slices.Sort(p.not)
		p.in = slices.DeleteFunc(p.in, func(v string) bool { return isIn(values, v) })
	case selection.Exists:
		p.absent = false
	case selection.DoesNotExist:
		p.present = false
	}
}

// shares reports whether the two have a state in common.
func (p *possible) shares(other *possible) bool {
	switch {
	case p.absent && other.absent:
		return true
	case !p.present || !other.present:
		return false
	case p.in != nil:
		return slices.ContainsFunc(p.in, other.allows)
	case other.in != nil:
		return slices.ContainsFunc(other.in, p.allows)
	default:
		return true
	}
}

func (p *possible) allows(value string) bool {
	if p.in != nil {
		return isIn(p.in, value)
	}
	return !isIn(p.not, value)
}

func isIn(sorted []string, value string) bool {
	_, found := slices.BinarySearch(sorted, value)
	return found
}
