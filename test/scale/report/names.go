package report

import (
	"cmp"
	"fmt"
	"slices"
)

// drawNames writes the name of each curve at its end: on the right with its last value, one
// under the other where ends are close; or inside, for a curve that ends earlier or leaves the
// picture.
func (p *panel) drawNames(c *canvas) {
	type name struct {
		curve curve
		y     float64
	}
	var ends []name
	for _, curve := range p.curves {
		if len(curve.points) == 0 {
			continue
		}
		x, y, inside := p.where(curve.points[len(curve.points)-1])
		switch {
		case p.name(curve) != "":
			ends = append(ends, name{curve, y})
		case inside:
			p.nameInside(c, curve, x, y, "")
		default:
			p.nameInside(c, curve, x, panelTop, ", beyond the scale")
		}
	}
	slices.SortStableFunc(ends, func(a, b name) int { return cmp.Compare(a.y, b.y) })
	const apart = 17
	for i := len(ends) - 2; i >= 0; i-- { // from the foot upwards: there is room above
		ends[i].y = min(ends[i].y, ends[i+1].y-apart)
	}
	for _, e := range ends {
		text := fitting(p.name(e.curve), nameSize, p.x+p.width-p.right-12)
		c.text(p.right+12, e.y+4, nameSize, start, fmt.Sprintf("bold text%d", e.curve.index), text)
	}
}

// name is that of a curve which ends at the right edge, with its last value, which comes first
// so that a long name cannot hide it; empty for other curves.
func (p *panel) name(c curve) string {
	if len(c.points) == 0 {
		return ""
	}
	last := c.points[len(c.points)-1]
	if last.nodes != p.most || p.axis.at(last.value) > 1 {
		return ""
	}
	return p.axis.short(last.value) + " " + p.axis.label + " " + c.subject
}

// nameInside names a curve whose end is not at the right edge: after its last point, or over it
// where there is more room to the left. Values keep off it.
func (p *panel) nameInside(c *canvas, curve curve, x, y float64, remark string) {
	s, room := spot{x + 10, y + 4, start}, p.x+p.width-x-10
	if widthOf(curve.subject+remark, nameSize) > room && x-p.left > room {
		s, room = spot{x, y - 10, end}, x-p.left
	}
	text := fitting(curve.subject, nameSize, room-widthOf(remark, nameSize)) + remark
	p.placing.taken = append(p.placing.taken, s.box(text, nameSize))
	c.text(s.x, s.y, nameSize, s.anchor, fmt.Sprintf("bold text%d", curve.index), text)
}

// beyond is the value of a point outside of the scale, in the unit of the curve's last point,
// which says it.
func (c curve) beyond(point int) string {
	last := len(c.points) - 1
	unit := newAxis(c.points[last].value)
	value := float64(c.points[point].value) / float64(unit.unit)
	digits := 0
	if value < 10 {
		digits = 1
	}
	text := plain(value, digits)
	if point == last {
		text += " " + unit.label
	}
	return text
}
