package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/scenario"
)

// invariants are proofs too: each says how often it was looked at. One that was never looked
// at proves nothing, and has failed.
func (d *player) invariants() []proof {
	var proofs []proof
	for _, invariant := range d.script.Always {
		var broken []string
		var checks int
		switch invariant {
		case scenario.NoEarlyPod:
			broken, checks = d.monitor.earlyPods()
		case scenario.ForeignTaintsStay:
			broken, checks = d.monitor.lostTaints()
		case scenario.HeldBeforeBack:
			broken, checks = d.monitor.unheldReboots()
		case scenario.NoEarlyReady:
			broken, checks = d.monitor.earlyReady()
		}
		proofs = append(proofs, invariantProof(invariant.Text(), broken, checks))
	}
	return proofs
}

func invariantProof(text string, broken []string, checks int) proof {
	p := proof{text: fmt.Sprintf("%s (%d observations)", text, checks)}
	switch {
	case len(broken) > 0:
		p.err = fmt.Errorf("%d times, first: %s", len(broken), broken[0])
	case checks == 0:
		p.err = errors.New("nothing was observed")
	}
	return p
}

// lostTaints are the taints that nodes joined with and lost, and how often the monitor looked.
func (w *monitor) lostTaints() (lost []string, checks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost), w.taintChecks
}

// unheldReboots are the nodes that came back from a reboot unheldBoots, and how often one came back.
func (w *monitor) unheldReboots() (unheldBoots []string, checks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.unheldBoots), w.reboots
}

// numbers say how much happened, and how fast.
func (w *monitor) numbers() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%d nodes, %d holds, %d releases, %d pods bound", len(w.nodes), w.holds, w.releases, len(w.binds))
	text += latencies("from condition True to taint gone", w.delays)
	if w.opens > 0 {
		text += fmt.Sprintf("; %d gates opened", w.opens)
	}
	return text + latencies("from the last component ready to gate open", w.gateDelays)
}

// latencies says how long something took; nothing if it did not happen.
func latencies(what string, times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	slices.Sort(times)
	return fmt.Sprintf("; %s: median %v, longest %v", what, times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

// summary says what was proven. It is true if nothing failed.
func (d *player) summary(style terminal.Style, complete bool) (lines []string, ok bool) {
	proofs := slices.Concat(d.proofs, d.invariants())
	ok = complete
	lines = append(lines, "", style.Bold("What was proven: "+d.script.Title))
	for _, p := range proofs {
		lines = append(lines, "  "+p.line(style))
		ok = ok && p.err == nil
	}
	lines = append(lines, "", "  "+d.monitor.numbers())
	if ok {
		lines = append(lines, "  "+style.Green(fmt.Sprintf("All %d held.", len(proofs))))
	} else {
		lines = append(lines, "  "+style.Red("The scenario failed."))
	}
	return lines, ok
}
