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
func (d *director) invariants() []proof {
	var proofs []proof
	for _, invariant := range d.script.Always {
		var broken []string
		var looks int
		switch invariant {
		case scenario.NoEarlyPod:
			broken, looks = d.witness.early()
		case scenario.ForeignTaintsStay:
			broken, looks = d.witness.taken()
		case scenario.HeldBeforeBack:
			broken, looks = d.witness.unready()
		case scenario.NoEarlyReady:
			broken, looks = d.witness.unsaid()
		}
		proofs = append(proofs, invariantProof(invariant.Text(), broken, looks))
	}
	return proofs
}

func invariantProof(text string, broken []string, looks int) proof {
	p := proof{text: fmt.Sprintf("%s (%d observations)", text, looks)}
	switch {
	case len(broken) > 0:
		p.err = fmt.Errorf("%d times, first: %s", len(broken), broken[0])
	case looks == 0:
		p.err = errors.New("nothing was observed")
	}
	return p
}

// taken are the taints that nodes joined with and lost, and how often the witness looked.
func (w *witness) taken() (lost []string, looks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost), w.looks
}

// unready are the nodes that came back from a reboot unheld, and how often one came back.
func (w *witness) unready() (unheld []string, looks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.unheld), w.backs
}

// numbers say how much happened, and how fast.
func (w *witness) numbers() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%d nodes, %d holds, %d releases, %d pods bound", len(w.nodes), w.holds, w.releases, len(w.binds))
	text += spread("from condition True to taint gone", w.delays)
	if w.opens > 0 {
		text += fmt.Sprintf("; %d gates opened", w.opens)
	}
	return text + spread("from the last component's yes to gate open", w.gateDelays)
}

// spread says how long something took; nothing if it did not happen.
func spread(what string, times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	slices.Sort(times)
	return fmt.Sprintf("; %s: median %v, longest %v", what, times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

// summary says what was proven. It is true if nothing failed.
func (d *director) summary(style terminal.Style, complete bool) (lines []string, ok bool) {
	proofs := slices.Concat(d.proofs, d.invariants())
	ok = complete
	lines = append(lines, "", style.Bold("What was proven: "+d.script.Title))
	for _, p := range proofs {
		lines = append(lines, "  "+p.line(style))
		ok = ok && p.err == nil
	}
	lines = append(lines, "", "  "+d.witness.numbers())
	if ok {
		lines = append(lines, "  "+style.Green(fmt.Sprintf("All %d held.", len(proofs))))
	} else {
		lines = append(lines, "  "+style.Red("The story did not go as expected."))
	}
	return lines, ok
}
