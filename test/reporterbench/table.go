package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints rows in columns, with a title above and notes below.
type table struct {
	title string
	rows  [][]string
	notes []string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) print() {
	fmt.Printf("\n%s\n\n", t.title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, cells := range t.rows {
		_, _ = fmt.Fprintln(w, "  "+strings.Join(cells, "\t")) // to a terminal, or nowhere
	}
	_ = w.Flush()
	for _, note := range t.notes {
		fmt.Println("  * " + note)
	}
	fmt.Println()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
