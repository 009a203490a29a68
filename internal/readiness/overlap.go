package readiness

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// overlap says whether some node could match all requirements, of one or several
// selectors. It is exact: labels are independent of each other, so a node exists exactly if
// every label on its own can be chosen.
func overlap(requirements ...labels.Requirements) bool {
	byKey := map[string]*possible{}
	for _, rs := range requirements {
		for i := range rs {
			p := byKey[rs[i].Key()]
			if p == nil {
				p = &possible{absent: true, present: true, not: sets.Set[string]{}}
				byKey[rs[i].Key()] = p
			}
			p.restrict(&rs[i])
		}
	}
	for _, p := range byKey {
		if !p.any() {
			return false
		}
	}
	return true
}

// possible is what one label may be: absent, or present with a value of in (nil: any) that
// is not in not.
type possible struct {
	absent, present bool
	in              sets.Set[string]
	not             sets.Set[string]
}

func (p *possible) restrict(r *labels.Requirement) {
	values := r.ValuesUnsorted()
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		p.absent = false
		if p.in == nil {
			p.in = sets.New(values...)
		} else {
			p.in = p.in.Intersection(sets.New(values...))
		}
	case selection.NotIn, selection.NotEquals:
		p.not.Insert(values...)
	case selection.Exists:
		p.absent = false
	case selection.DoesNotExist:
		p.present = false
	}
}

func (p *possible) any() bool {
	if p.absent {
		return true
	}
	return p.present && (p.in == nil || p.in.Difference(p.not).Len() > 0)
}
