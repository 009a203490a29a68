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

// teller tells the story while it is played: on a terminal with a drawing below it, elsewhere
// with a line for each step and change.
type teller struct {
	screen *terminal.Screen
	style  terminal.Style
	draws  bool
	title  string
	url    string
	began  time.Time

	mu      sync.Mutex
	current string
	ended   sync.WaitGroup
	stop    context.CancelFunc
}

// pace is the least time between two drawings, and busyPace between two lines about many nodes.
const (
	pace     = 150 * time.Millisecond
	busyPace = 2 * time.Second
)

// begin starts to show the fleet, until end.
func (t *teller) begin(ctx context.Context, fleet *live.Fleet, witness *witness) {
	ctx, t.stop = context.WithCancel(ctx)
	t.began = time.Now()
	follower, _ := fleet.Follow()
	t.ended.Go(func() {
		defer follower.Stop()
		if t.draws {
			t.draw(ctx, follower, fleet, witness)
		} else {
			t.list(ctx, follower, fleet, witness)
		}
	})
}

// end stops showing. The last drawing stays.
func (t *teller) end() {
	if t.stop != nil {
		t.stop()
		t.ended.Wait()
	}
	t.screen.Close()
}

// say prints a line that stays.
func (t *teller) say(lines ...string) { t.screen.Print(lines...) }

// step says what happens now.
func (t *teller) step(step *scenario.Step) {
	t.mu.Lock()
	t.current = step.Text()
	t.mu.Unlock()
	switch {
	case step.Say != "":
		t.say(t.style.Bold(terminal.Clean(strings.TrimSpace(step.Say))))
	case !t.draws && step.Expect == nil && step.Pause == nil:
		t.say("  " + terminal.Clean(step.Text()))
	}
}

// proof says what became of an expectation.
func (t *teller) proof(p proof) { t.say("  " + p.line(t.style)) }

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

// draw redraws when something has changed, and the clock once a second.
func (t *teller) draw(ctx context.Context, follower *live.Follower, fleet *live.Fleet, witness *witness) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for ctx.Err() == nil {
		follower.Take()
		t.screen.Draw(t.frame(fleet, witness).lines())
		select {
		case <-ctx.Done():
		case <-second.C:
		case <-follower.Changed():
		}
		_ = sleep(ctx, pace) // the loop ends with the context
	}
	t.screen.Draw(t.frame(fleet, witness).lines())
}

func (t *teller) frame(fleet *live.Fleet, witness *witness) *frame {
	t.mu.Lock()
	step := t.current
	t.mu.Unlock()
	now := time.Now()
	f := &frame{title: t.title, step: step, url: t.url, elapsed: now.Sub(t.began), now: now, style: t.style}
	f.columns, f.rows = t.screen.Size()
	f.running, f.waiting, f.pods = witness.count()
	f.ready, f.gated = witness.countReady()
	snapshot := fleet.Snapshot()
	for _, node := range snapshot.Nodes {
		if witness.knows(node.Name) {
			f.nodes = append(f.nodes, node)
		}
	}
	for _, pod := range snapshot.Gated {
		if pod.Namespace == Namespace {
			f.closed = append(f.closed, pod)
		}
	}
	return f
}

// list prints a line when the state of a node has changed; of many nodes, only counts.
func (t *teller) list(ctx context.Context, follower *live.Follower, fleet *live.Fleet, witness *witness) {
	said := map[string]string{}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-follower.Changed():
		}
		_ = sleep(ctx, pace) // what belongs together comes together
		changed := follower.Take().Nodes
		f := t.frame(fleet, witness)
		if len(f.nodes) > fewNodes {
			t.sayOnce(said, "", f.counts())
			_ = sleep(ctx, busyPace)
			continue
		}
		for _, node := range changed {
			if witness.knows(node.Name) && tellable(node) {
				t.sayOnce(said, node.Name, changeLine(node))
			}
		}
		t.sayPods(said, f)
	}
}

// sayPods prints a line when the pods of a node wait for something else than before.
func (t *teller) sayPods(said map[string]string, f *frame) {
	for _, node := range f.nodes {
		about, texts := "pods of "+node.Name, f.closedOn(node.Name)
		switch {
		case len(texts) > 0:
			t.sayOnce(said, about, terminal.Clean(node.Name+": "+strings.Join(texts, ", ")))
		case said[about] != "":
			t.sayOnce(said, about, terminal.Clean(node.Name+": no pod waits for its network"))
		}
	}
}

func (t *teller) sayOnce(said map[string]string, about, line string) {
	if said[about] != line {
		t.say("    " + line)
	}
	said[about] = line
}

// tellable says that the state is one to speak of, and not one on the way to the next.
func tellable(node view.Node) bool {
	return node.State == noderule.Released || node.State == noderule.Held && len(missing(node))+len(besides(node)) > 0
}

// changeLine reads as in "worker-1 is held: NetworkReady is False, must be True".
func changeLine(node view.Node) string {
	line := node.Name + " is " + strings.ToLower(string(node.State))
	if node.State == noderule.Held {
		var texts []string
		for _, m := range missing(node) {
			texts = append(texts, m.String())
		}
		for _, word := range besides(node) {
			texts = append(texts, "waits for "+word)
		}
		line += ": " + strings.Join(texts, "; ")
	}
	return terminal.Clean(line)
}
