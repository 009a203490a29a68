package probe

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/neterror"
)

// limit is the maximum duration of a probe, in addition to the caller's context.
const limit = 2 * time.Second

// Asker runs probes on this node. The zero value is ready to use, and safe for concurrent use.
type Asker struct {
	// Root is the directory where the host's file system is mounted, e.g. /host. Empty: the root directory.
	Root string
	// Dial opens connections to pods. nil: a net.Dialer.
	Dial DialFunc

	files fileChecks
}

// DialFunc opens a connection, like net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Ask runs a probe. A result after the end of the context does not come from the component.
func (a *Asker) Ask(ctx context.Context, p podrule.Probe) podrule.Answer {
	if ctx.Err() != nil {
		return no(givenUp)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch p.Kind {
	case podrule.File:
		return a.files.ask(ctx, a.Root, p)
	case podrule.HTTP:
		return get(ctx, p.URL)
	case podrule.Reach:
		return reach(ctx, a.Dial, p.Address)
	}
	return no("this version of podgate does not support the component")
}

var yes = podrule.Answer{Yes: true}

func no(why string) podrule.Answer { return podrule.Answer{Why: why} }

// givenUp is the reason if the caller cancelled the probe.
const givenUp = "the probe was cancelled"

// explain returns the reason for a missing response. If the context has ended, the reason is the context's
// error.
func explain(ctx context.Context, err error, within time.Duration) string {
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	if errors.Is(err, context.Canceled) {
		return givenUp
	}
	return neterror.Explain(err, within)
}
