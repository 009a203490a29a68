package print

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

// Lines are lines of text without line breaks.
type Lines []string

// add appends exactly one line. The arguments are escaped.
func (l *Lines) add(format string, args ...any) {
	*l = append(*l, strings.TrimRight(terminal.Clean(fmt.Sprintf(format, args...)), " "))
}

// heading appends an empty line and then this line.
func (l *Lines) heading(format string, args ...any) {
	if len(*l) > 0 {
		l.add("")
	}
	l.add(format, args...)
}

// below appends other lines, after an empty line if there are lines before them.
func (l *Lines) below(other Lines) {
	if len(*l) > 0 && len(other) > 0 {
		l.add("")
	}
	*l = append(*l, other...)
}

// table appends rows in columns. An empty cell becomes a dash.
func (l *Lines) table(header []string, rows [][]string) {
	var text bytes.Buffer
	writer := printers.GetNewTabWriter(&text)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = terminal.Clean(cell); cells[i] == "" {
				cells[i] = "-"
			}
		}
		_, _ = writer.Write([]byte(strings.Join(cells, "\t") + "\n")) // a buffer takes everything
	}
	_ = writer.Flush()
	for line := range strings.Lines(text.String()) {
		*l = append(*l, strings.TrimRight(line, " \n"))
	}
}

// count returns e.g. "1 node", "3 nodes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
