package probe

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/neterror"
)

// limit is how long a question may take, whatever the limit of who asks it is.
const limit = 2 * time.Second

// Asker asks questions on this node. The zero value can be used, by many at a time.
type Asker struct {
	// Root is the directory that the files of the host are mounted under, e.g. /host. Empty: they
	// are where the host has them.
	Root string
	// Dial opens connections to pods. nil: as a net.Dialer does.
	Dial DialFunc

	looks looks
}

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Ask asks a question. An answer that comes after the context has ended is not one of the component.
func (a *Asker) Ask(ctx context.Context, p podrule.Probe) podrule.Answer {
	if ctx.Err() != nil {
		return no(givenUp)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch p.Kind {
	case podrule.File:
		return a.looks.ask(ctx, a.Root, p)
	case podrule.HTTP:
		return get(ctx, p.URL)
	case podrule.Reach:
		return reach(ctx, a.Dial, p.Address)
	}
	return no("this version does not know how to ask it")
}

var yes = podrule.Answer{Yes: true}

func no(why string) podrule.Answer { return podrule.Answer{Why: why} }

// givenUp are the words if who asked does not want to know any more.
const givenUp = "the question was given up"

// words say why nobody answered within a time. If the question has ended, that is why, whatever the
// error is then.
func words(ctx context.Context, err error, within time.Duration) string {
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	if errors.Is(err, context.Canceled) {
		return givenUp
	}
	return neterror.Explain(err, within)
}
