package check

import (
	"context"
	"fmt"
	"time"
)

// Guard enforces the timeout of a check, also if the check does not return, e.g. because of a file on a dead
// network file system. It starts no other run until such a run ends.
type Guard struct {
	Check   Check
	Timeout time.Duration

	pending chan Observation
}

// grace is the time that a check may need after its timeout; a check with a cleanup defines its own.
const grace = 2 * time.Second

type cleaner interface{ grace() time.Duration }

func (g *Guard) limit() time.Duration {
	if c, cleans := g.Check.(cleaner); cleans {
		return g.Timeout + c.grace()
	}
	return g.Timeout + grace
}

// Run runs the check once, or waits for the previous run if it has not returned.
func (g *Guard) Run(ctx context.Context) Observation {
	runCtx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	if g.pending == nil {
		g.pending = make(chan Observation, 1)
		go func(pending chan<- Observation) { pending <- g.Check.Run(runCtx) }(g.pending)
	}
	late := time.NewTimer(g.limit())
	defer late.Stop()
	select {
	case observation := <-g.pending:
		g.pending = nil
		return observation
	case <-late.C:
		return failed(ReasonCheckHangs, fmt.Sprintf("the check did not return within %v", g.limit()))
	}
}
