package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// axis goes from 0 to a round number.
type axis struct {
	top   float64
	step  float64
	unit  time.Duration // of its numbers
	label string        // of the unit
}

// newAxis has room for a duration, and about five marks.
func newAxis(longest time.Duration) axis {
	a := axis{unit: time.Microsecond, label: "µs"}
	switch {
	case longest >= 10*time.Minute:
		a.unit, a.label = time.Minute, "min"
	case longest >= time.Second:
		a.unit, a.label = time.Second, "s"
	case longest >= 2*time.Millisecond:
		a.unit, a.label = time.Millisecond, "ms"
	}
	value := max(float64(longest)/float64(a.unit), 1e-9)
	a.step = roundStep(value / 4)
	a.top = a.step * math.Ceil(value/a.step-1e-9)
	return a
}

// roundStep is the next of 1, 2, 5, 10, 20 … that is not smaller.
func roundStep(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, round := range []float64{1, 2, 5} {
		if round*power >= value*(1-1e-9) {
			return round * power
		}
	}
	return 10 * power
}

// marks are the numbers on it.
func (a axis) marks() []float64 {
	var all []float64
	for i := range int(math.Round(a.top/a.step)) + 1 {
		all = append(all, float64(i)*a.step)
	}
	return all
}

// at is where a duration is on it: 0 at the foot, 1 at the top.
func (a axis) at(d time.Duration) float64 { return float64(d) / float64(a.unit) / a.top }

// short is a duration as a number of the axis.
func (a axis) short(d time.Duration) string {
	value := float64(d) / float64(a.unit)
	if a.top >= 100 {
		return number(int(math.Round(value)))
	}
	return plain(value, 1)
}

// plain has at most so many digits after the point, and none in vain.
func plain(value float64, digits int) string {
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// mark is a number on the axis with its unit.
func (a axis) mark(value float64) string {
	switch {
	case value == 0:
		return "0"
	case value >= 1000:
		return number(int(math.Round(value))) + " " + a.label
	}
	return plain(value, 3) + " " + a.label
}
