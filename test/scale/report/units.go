package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ratio is how many times as much; 0: not known.
type ratio float64

// over is a divided by b, unknown where one of them is.
func over[T int | int64 | time.Duration](a, b T) ratio {
	if a <= 0 || b <= 0 {
		return 0
	}
	return ratio(float64(a) / float64(b))
}

func (r ratio) String() string {
	switch {
	case r == 0:
		return ""
	case r < 9.995:
		return strconv.FormatFloat(float64(r), 'f', 2, 64) + "×"
	}
	return decimal(float64(r)) + "×"
}

// decimal has one digit after the point, or none where it would not count.
func decimal(value float64) string {
	if value >= 99.95 {
		return number(int(math.Round(value)))
	}
	return strconv.FormatFloat(value, 'f', 1, 64)
}

// number is a count with commas: 5,000.
func number(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// counted is a number of things: 1 node, 5,000 nodes.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// span is a duration for people; nothing for none.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return strconv.FormatInt(max(1, int64(math.Round(float64(d)/1e3))), 10) + " µs"
	case d < 10*time.Millisecond:
		return decimal(float64(d)/1e6) + " ms"
	case d < 999500*time.Microsecond:
		return strconv.FormatInt(int64(math.Round(float64(d)/1e6)), 10) + " ms"
	case d < 1000*time.Second:
		return decimal(d.Seconds()) + " s"
	case d < 100*time.Minute:
		return decimal(d.Minutes()) + " min"
	}
	return decimal(d.Hours()) + " h"
}

// size is a number of bytes for people.
func size(bytes int64) string {
	value, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for value >= 1023.5 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return decimal(value) + " " + units[unit]
}

// listed is a list in words: a, b and c.
func listed(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}

// unique drops what was said before.
func unique[T comparable](items []T) []T {
	var kept []T
	for _, item := range items {
		if !slices.Contains(kept, item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// lower begins a text in lower case, to stand inside of a sentence.
func lower(text string) string {
	return strings.ToLower(text[:min(1, len(text))]) + text[min(1, len(text)):]
}
