package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// table is a Markdown table.
type table struct {
	header []string
	rows   [][]string
}

func (t table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.header)
	fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(t.header)))
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// unknownIfZero formats a value; 0 is an empty cell.
func unknownIfZero(value float64, text func(float64) string) string {
	if value == 0 {
		return ""
	}
	return text(value)
}

func times(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) + "×" }

func perSecond(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) + "/s" }

func plain(value float64) string { return strconv.FormatFloat(value, 'g', 4, 64) }

func size(bytes float64) string { return strconv.FormatFloat(bytes/(1<<20), 'f', 1, 64) + " MiB" }

func span(d float64) string {
	if d := time.Duration(d); d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(time.Duration(d).Seconds(), 'f', 1, 64) + " s"
}

// number formats an integer with commas: 5,000.
func number(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// counted formats a number and its noun: 1 node, 5,000 nodes.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}
