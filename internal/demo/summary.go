package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

// invariantProof returns the result of an invariant and the number of observations. Without observations the invariant
// has failed.
func invariantProof(text string, violations []string, checks int) proof {
	p := proof{text: fmt.Sprintf("%s (%d observations)", text, checks)}
	switch {
	case len(violations) > 0:
		p.err = fmt.Errorf("%d times, first: %s", len(violations), violations[0])
	case checks == 0:
		p.err = errors.New("no observations")
	}
	return p
}

// numbers returns counts and latencies of the scenario.
func (m *monitor) numbers() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf("%d nodes, %d holds, %d releases, %d pods bound", len(m.nodes), m.holds, m.releases, len(m.binds))
	text += latencies("from condition True to taint gone", m.delays)
	if m.opens > 0 {
		text += fmt.Sprintf("; %d gates opened", m.opens)
	}
	return text + latencies("from the last component ready to gate open", m.gateDelays)
}

// latencies formats the median and maximum of times; empty if there are none.
func latencies(what string, times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	slices.Sort(times)
	return fmt.Sprintf("; %s: median %v, maximum %v", what, times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

// summary returns the lines of the results, and true if nothing failed.
func (s *session) summary(style terminal.Style, complete bool) (lines []string, ok bool) {
	proofs := s.proofs
	for _, invariant := range s.script.Always {
		violations, checks := s.monitor.violations(invariant)
		proofs = append(proofs, invariantProof(invariant.Text(), violations, checks))
	}
	ok = complete
	lines = append(lines, "", style.Bold("Results: "+s.script.Title))
	for _, p := range proofs {
		lines = append(lines, "  "+p.line(style))
		ok = ok && p.err == nil
	}
	lines = append(lines, "", "  "+s.monitor.numbers())
	if ok {
		lines = append(lines, "  "+style.Green(fmt.Sprintf("All %d checks passed.", len(proofs))))
	} else {
		lines = append(lines, "  "+style.Red("The scenario failed."))
	}
	return lines, ok
}
