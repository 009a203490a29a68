package report

import "math"

// box is a place that something takes.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

// placing finds places for labels: never on each other or on a point, and as little as can be
// on lines.
type placing struct {
	within box
	taken  []box
	dots   [][2]float64 // along lines
}

// along remembers where a line goes.
func (p *placing) along(x1, y1, x2, y2 float64) {
	steps := math.Ceil(math.Hypot(x2-x1, y2-y1) / 3)
	for i := 0.0; i <= steps; i++ {
		share := i / max(steps, 1)
		p.dots = append(p.dots, [2]float64{x1 + (x2-x1)*share, y1 + (y2-y1)*share})
	}
}

// point remembers where a point is.
func (p *placing) point(x, y float64) {
	p.taken = append(p.taken, box{x - 4, y - 4, x + 4, y + 4})
}

// spot is where a label goes: the foot of its text.
type spot struct {
	x, y   float64
	anchor string
}

// place finds a spot for a text beside a point, above it if it can be chosen, else below. It is
// false where there is none.
func (p *placing) place(x, y, size float64, text string, above bool) (spot, bool) {
	const gap = 8
	up, down := y-gap, y+gap+0.75*size
	if !above {
		up, down = down, up
	}
	best, found, least := spot{}, box{}, math.Inf(1)
	for _, s := range []spot{
		{x, up, middle}, {x - 3, up, end}, {x + 3, up, start}, {x - gap, y + 0.35*size, end},
		{x, down, middle}, {x + 3, down, start}, {x - 3, down, end}, {x + gap, y + 0.35*size, start},
	} {
		b := s.box(text, size)
		if cost := p.cost(b); cost < least {
			best, found, least = s, b, cost
		}
	}
	if math.IsInf(least, 1) {
		return spot{}, false
	}
	p.taken = append(p.taken, found)
	return best, true
}

func (s spot) box(text string, size float64) box {
	width := widthOf(text, size)
	left := s.x
	switch s.anchor {
	case middle:
		left -= width / 2
	case end:
		left -= width
	}
	return box{left, s.y - 0.8*size, left + width, s.y + 0.15*size}
}

// cost is how much of lines is under a box; without end if it cannot be there at all.
func (p *placing) cost(b box) float64 {
	if b.left < p.within.left || b.right > p.within.right || b.top < p.within.top || b.bottom > p.within.bottom {
		return math.Inf(1)
	}
	for _, other := range p.taken {
		if b.meets(other) {
			return math.Inf(1)
		}
	}
	cost := 0.0
	for _, dot := range p.dots {
		if dot[0] > b.left && dot[0] < b.right && dot[1] > b.top && dot[1] < b.bottom {
			cost++
		}
	}
	return cost
}
