package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/scenario"
)

// output displays the scenario while it runs: on a terminal with a table below it, otherwise
// with one line per step and change.
type output struct {
	screen *terminal.Screen
	style  terminal.Style
	draws  bool
	title  string
	url    string
	began  time.Time

	mu      sync.Mutex
	current string
	printed map[string]string // the last line per node, and per node's pods
	ended   sync.WaitGroup
	stop    context.CancelFunc
}

// pace is the minimum time between two updates, and busyPace between two lines about many nodes.
const (
	pace     = 150 * time.Millisecond
	busyPace = 2 * time.Second
)

// begin starts the display of the fleet, until end.
func (t *output) begin(ctx context.Context, fleet *live.Fleet, monitor *monitor) {
	ctx, t.stop = context.WithCancel(ctx)
	t.began = time.Now()
	t.ended.Go(func() { t.follow(ctx, fleet, monitor) })
}

// end stops the display. The last table stays on the terminal.
func (t *output) end() {
	if t.stop != nil {
		t.stop()
		t.ended.Wait()
	}
	t.screen.Close()
}

// print prints lines above the table.
func (t *output) print(lines ...string) { t.screen.Print(lines...) }

// step prints a step.
func (t *output) step(step *scenario.Step) {
	t.mu.Lock()
	t.current = step.Text()
	t.mu.Unlock()
	switch {
	case step.Say != "":
		t.print(t.style.Bold(terminal.Clean(strings.TrimSpace(step.Say))))
	case !t.draws && step.Expect == nil && step.Pause == nil:
		t.print("  " + terminal.Clean(step.Text()))
	}
}

// proof prints the result of an expectation.
func (t *output) proof(p proof) { t.print("  " + p.line(t.style)) }

func (p proof) line(style terminal.Style) string {
	text := terminal.Clean(p.text)
	if p.err != nil {
		return style.Red("✗ "+text) + ": " + terminal.Clean(p.err.Error())
	}
	line := style.Green("✓") + " " + text
	if p.took > 0 {
		line += style.Dim(fmt.Sprintf("  %.1fs", p.took.Seconds()))
	}
	return line
}

// follow updates the display after changes, and the clock once per second.
func (t *output) follow(ctx context.Context, fleet *live.Fleet, monitor *monitor) {
	follower, _ := fleet.Follow()
	defer follower.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for ctx.Err() == nil {
		follower.Take()
		f := t.frame(fleet, monitor)
		switch {
		case t.draws:
			t.screen.Draw(f.lines())
		case len(f.nodes) > fewNodes:
			t.printOnce("", f.counts())
			_ = sleep(ctx, busyPace) // the loop ends with the context
		default:
			t.printChanges(f)
		}
		select {
		case <-ctx.Done():
		case <-second.C:
		case <-follower.Changed():
		}
		_ = sleep(ctx, pace) // collect simultaneous changes
	}
	if t.draws {
		t.screen.Draw(t.frame(fleet, monitor).lines())
	}
}

func (t *output) frame(fleet *live.Fleet, monitor *monitor) *frame {
	t.mu.Lock()
	step := t.current
	t.mu.Unlock()
	now := time.Now()
	f := &frame{title: t.title, step: step, url: t.url, elapsed: now.Sub(t.began), now: now, style: t.style}
	f.columns, f.rows = t.screen.Size()
	f.count(monitor.podStates())
	snapshot := fleet.Snapshot()
	f.nodes = snapshot.Nodes
	for _, pod := range snapshot.Gated {
		if pod.Namespace == Namespace {
			f.closed = append(f.closed, pod)
		}
	}
	return f
}

// printChanges prints a line when the state of a node changes, and when its pods wait for other components.
func (t *output) printChanges(f *frame) {
	for _, node := range f.nodes {
		if isSettled(node) {
			t.printOnce(node.Name, changeLine(node))
		}
	}
	for _, node := range f.nodes {
		about, texts := "pods of "+node.Name, f.closedOn(node.Name)
		switch {
		case len(texts) > 0:
			t.printOnce(about, terminal.Clean(node.Name+": "+strings.Join(texts, ", ")))
		case t.printed[about] != "":
			t.printOnce(about, terminal.Clean(node.Name+": no pod waits for its network"))
		}
	}
}

// printOnce prints a line unless it equals the previous line about the same subject.
func (t *output) printOnce(about, line string) {
	if t.printed[about] != line {
		t.print("    " + line)
	}
	t.printed[about] = line
}

// isSettled reports whether to print the state: a held node must have a cause.
func isSettled(node view.Node) bool {
	return node.State == noderule.Released || node.State == noderule.Held && len(missing(node))+len(otherCauses(node)) > 0
}

// changeLine returns e.g. "worker-1 is held: NetworkReady is False, must be True".
func changeLine(node view.Node) string {
	line := node.Name + " is " + strings.ToLower(string(node.State))
	if node.State == noderule.Held {
		var texts []string
		for _, m := range missing(node) {
			texts = append(texts, m.String())
		}
		for _, cause := range otherCauses(node) {
			texts = append(texts, "waits for "+cause)
		}
		line += ": " + strings.Join(texts, "; ")
	}
	return terminal.Clean(line)
}
