package dashboard

import (
	"strings"

	"github.com/readygate/readygate/internal/plugin/view"
)

// podRow is what the page needs to show a pod that waits; the rest is in its story.
type podRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	// Gate are the gates for which the pod waits, and For is what they wait for, in words.
	Gate string `json:"gate"`
	For  string `json:"for"`
	// Since is since when it waits, and Due when it is late, in seconds; 0 if nobody knows, or never.
	Since int64 `json:"since,omitempty"`
	Due   int64 `json:"due,omitempty"`
}

func podRowOf(p view.Pod) podRow {
	row := podRow{Namespace: p.Namespace, Name: p.Name, Node: p.Node, Since: seconds(p.Since)}
	var gates, reasons []string
	for _, g := range p.Gates {
		if !g.Waits() {
			continue
		}
		gates, reasons = append(gates, g.Name), append(reasons, g.For)
		if due := seconds(g.Due); due > 0 && (row.Due == 0 || due < row.Due) {
			row.Due = due
		}
	}
	row.Gate, row.For = strings.Join(gates, ", "), strings.Join(reasons, "; ")
	return row
}

func podRowsOf(pods []view.Pod) []podRow {
	rows := make([]podRow, len(pods))
	for i, p := range pods {
		rows[i] = podRowOf(p)
	}
	return rows
}
