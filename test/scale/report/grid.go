package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// column of a table. A cell that says nothing is empty; 0 says something.
type column struct {
	name   string
	text   bool // words, to the left; else numbers, to the right
	always bool // shown as a label even where all rows have the same
	cells  []string
}

// grid is a table: labels say which row it is, columns hold what was measured.
type grid struct {
	labels  []column
	columns []column
}

// shown are the columns that hold something, after labels that tell rows apart; none if no
// column holds anything.
func (g grid) shown() []column {
	hold := func(c column) bool {
		return slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" })
	}
	var columns []column
	for _, c := range g.columns {
		if hold(c) {
			columns = append(columns, c)
		}
	}
	if columns == nil {
		return nil
	}
	var labels []column
	for _, c := range g.labels {
		if c.always || len(unique(c.cells)) > 1 {
			labels = append(labels, c)
		}
	}
	return append(labels, columns...)
}

// text is for a terminal.
func (g grid) text() string {
	columns := g.shown()
	if columns == nil {
		return ""
	}
	var b strings.Builder
	for row := -1; row < len(columns[0].cells); row++ {
		var line []string
		for _, c := range columns {
			width := utf8.RuneCountInString(c.name)
			for _, cell := range c.cells {
				width = max(width, utf8.RuneCountInString(cell))
			}
			cell := c.name
			if row >= 0 {
				cell = c.cells[row]
			}
			space := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
			if c.text {
				line = append(line, cell+space)
			} else {
				line = append(line, space+cell)
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
	}
	return b.String()
}

// markdown is for the page.
func (g grid) markdown() string {
	columns := g.shown()
	if columns == nil {
		return ""
	}
	var b bytes.Buffer
	rule := []string{""}
	for _, c := range columns {
		fmt.Fprintf(&b, "| %s ", cell(c.name))
		if c.text {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "--:")
		}
	}
	fmt.Fprintf(&b, "|\n%s|\n", strings.Join(rule, "|"))
	for row := range columns[0].cells {
		for _, c := range columns {
			fmt.Fprintf(&b, "| %s ", cell(c.cells[row]))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// cell keeps a text in its cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
