package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	panelTop    = 84.0  // of the plot
	panelBottom = 332.0 // of the plot
	labelSize   = 11.5
	nameSize    = 12.5
)

// panel is one chart of curves, with room for marks on its left and names on its right.
type panel struct {
	title, remark string
	x, width      float64
	curves        []curve

	axis        axis
	most        int     // nodes
	left, right float64 // of the plot
	placing     placing
}

func (p *panel) draw(c *canvas) {
	c.text(p.x, 32, 15, start, "ink bold", p.title)
	c.text(p.x, 51, 12, start, "soft", p.remark)
	p.measure()
	if p.most == 0 {
		c.text(p.x, panelTop+20, 13, start, "soft", "not measured")
		return
	}
	p.drawAxes(c)
	for _, curve := range slices.Backward(p.curves) { // ours is on top
		p.drawLine(c, curve)
	}
	for _, curve := range slices.Backward(p.curves) {
		p.drawPoints(c, curve)
	}
	p.drawNames(c)
	p.drawValues(c)
}

// measure finds the scales. Ours and the floor always fit; others do if that does not make the
// two unreadable.
func (p *panel) measure() {
	var fit, all time.Duration
	for _, curve := range p.curves {
		for _, point := range curve.points {
			p.most = max(p.most, point.nodes)
			all = max(all, point.value)
			if rank(curve.subject) < 2 {
				fit = max(fit, point.value)
			}
		}
	}
	if all <= 3*fit || fit == 0 {
		fit = all
	} else {
		fit += fit / 5 // room for the numbers at the edge
	}
	p.axis = newAxis(fit)
	room := 0.0 // for names
	for _, curve := range p.curves {
		if text := p.name(curve); text != "" {
			room = max(room, widthOf(text, nameSize))
		}
	}
	p.left, p.right = p.x+46, p.x+p.width-min(room, 150)-14
	p.placing = placing{within: box{p.left, panelTop - 8, p.right + 14, panelBottom}}
}

// where a point is, and whether it is inside of the scale.
func (p *panel) where(point measurePoint) (x, y float64, inside bool) {
	share := p.axis.at(point.value)
	x = p.left + (p.right-p.left)*float64(point.nodes)/float64(p.most)
	return x, panelBottom - (panelBottom-panelTop)*share, share <= 1
}

func (p *panel) drawAxes(c *canvas) {
	for _, mark := range p.axis.marks() {
		y := panelBottom - (panelBottom-panelTop)*mark/p.axis.top
		class := "rule"
		if mark == 0 {
			class = "axis"
		}
		c.line(p.left, y, p.right, y, class)
		c.text(p.left-8, y+4, 12, end, "soft", p.axis.mark(mark))
	}
	var sizes []int
	for _, curve := range p.curves {
		for _, point := range curve.points {
			sizes = append(sizes, point.nodes)
		}
	}
	slices.Sort(sizes)
	room := p.right + 40 // the largest number is always there
	for _, nodes := range slices.Backward(slices.Compact(sizes)) {
		x, _, _ := p.where(measurePoint{nodes: nodes})
		c.line(x, panelBottom, x, panelBottom+4, "axis")
		half := widthOf(number(nodes), 11.5) / 2
		if x+half > room {
			continue
		}
		room = x - half - 2
		c.text(x, panelBottom+18, 11.5, middle, "soft", number(nodes))
	}
	c.text(p.right+24, panelBottom+18, 11.5, start, "soft", "nodes")
}

// drawLine draws the line of a curve as far as it is inside of the scale.
func (p *panel) drawLine(c *canvas, curve curve) {
	for i := 1; i < len(curve.points); i++ {
		x1, y1, inside1 := p.where(curve.points[i-1])
		x2, y2, inside2 := p.where(curve.points[i])
		if !inside1 && !inside2 {
			continue
		}
		if !inside2 {
			x2, y2 = x1+(x2-x1)*(panelTop-y1)/(y2-y1), panelTop
		}
		if !inside1 {
			x1, y1 = x2+(x1-x2)*(panelTop-y2)/(y1-y2), panelTop
		}
		c.path(fmt.Sprintf("line%d", curve.index), false, x1, y1, x2, y2)
		p.placing.along(x1, y1, x2, y2)
	}
}

// drawPoints draws a point where it is, and an arrow at the edge for one beyond it.
func (p *panel) drawPoints(c *canvas, curve curve) {
	fill := fmt.Sprintf("fill%d", curve.index)
	for _, point := range curve.points {
		x, y, inside := p.where(point)
		switch {
		case !inside:
			y = panelTop
			c.path(fill, true, x-5, y+4, x, y-5, x+5, y+4)
		case curve.subject == Floor:
			c.path(fill, true, x-4, y-4, x+4, y-4, x+4, y+4, x-4, y+4)
		default:
			c.path(fill, true, x-5, y, x, y-5, x+5, y, x, y+5)
		}
		p.placing.point(x, y)
	}
}

// drawValues labels all points but the last of each curve, which stands with the name.
func (p *panel) drawValues(c *canvas) {
	highest := slices.MaxFunc(p.curves, func(a, b curve) int { return cmp.Compare(p.height(a), p.height(b)) })
	for _, curve := range p.curves {
		for i, point := range slices.Backward(curve.points) { // the small sizes are close to each other
			x, y, inside := p.where(point)
			text, above := p.axis.short(point.value), curve.subject == highest.subject
			if !inside {
				y, text, above = panelTop, curve.beyond(i), false
			} else if i == len(curve.points)-1 && point.nodes == p.most {
				continue
			}
			if spot, ok := p.placing.place(x, y, labelSize, text, above); ok {
				c.text(spot.x, spot.y, labelSize, spot.anchor, fmt.Sprintf("text%d", curve.index), text)
			}
		}
	}
}

// height is how high the last point of a curve inside of the scale is.
func (p *panel) height(c curve) float64 {
	last := 0.0
	for _, point := range c.points {
		if _, y, inside := p.where(point); inside {
			last = panelBottom - y
		}
	}
	return last
}

// words are the numbers of the panel for who cannot see it.
func (p *panel) words() string {
	var all []string
	for _, curve := range p.curves {
		var points []string
		for _, point := range curve.points {
			points = append(points, fmt.Sprintf("%s with %s", span(point.value), counted(point.nodes, "node")))
		}
		if points != nil {
			all = append(all, fmt.Sprintf("%s %s", curve.subject, listed(points)))
		}
	}
	if all == nil {
		all = []string{"not measured"}
	}
	return p.title + ": " + strings.Join(all, "; ") + "."
}
