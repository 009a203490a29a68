package probe

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// handfulSize is how many peers an agent asks, by turns.
	handfulSize = 10
	// handfulLasts is how long they are asked before others are picked, if all of them answer.
	handfulLasts = 10 * time.Minute
	// fewLast is that if there were fewer to pick: the cluster is small, or its agents are just
	// starting. It is also how soon others are picked if one does not answer.
	fewLast = time.Minute
	// noneLasts is that if there was none.
	noneLasts = 10 * time.Second

	// listLimit is how long a list may take, and listWait how long a question waits for the first.
	listLimit = 10 * time.Second
	listWait  = time.Second
)

// errNotListed says that no list has been read yet.
var errNotListed = errors.New("other agents have not been listed yet")

// handful is a few peers, picked at random: an agent need not know all others, and a list of them
// costs the API server the more the larger the cluster is. The zero value has none yet. It is safe
// for concurrent use.
type handful struct {
	mu   sync.Mutex
	some []string
	// failed are those that did not answer since they were picked.
	failed map[string]bool
	// read is when the last list was read, and err why it could not be.
	read time.Time
	err  error
	// lasts is how long it is used, and rest how long if one has failed.
	lasts, rest time.Duration
	// listing is closed when the list that is being read has been; nil: none is.
	listing chan struct{}
}

// peers are whom to ask, and why nobody is known. A list is read beside that: only who knows nobody
// waits for it.
func (h *handful) peers(ctx context.Context, list func(context.Context) ([]string, error)) ([]string, error) {
	some, listing, err := h.now(ctx, list)
	if len(some) > 0 || listing == nil {
		return some, err
	}
	patience := time.NewTimer(listWait)
	defer patience.Stop()
	select {
	case <-listing:
	case <-patience.C:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.some, h.why()
}

// now is what is known, and begins to read a list if it is time.
func (h *handful) now(ctx context.Context, list func(context.Context) ([]string, error)) ([]string, chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listing == nil && h.due() {
		h.listing = make(chan struct{})
		go h.renew(context.WithoutCancel(ctx), list)
	}
	return h.some, h.listing, h.why()
}

// due says whether it is time to read a list.
func (h *handful) due() bool {
	since := time.Since(h.read)
	return h.read.IsZero() || since >= h.lasts || len(h.failed) > 0 && since >= h.rest
}

// why is why nobody is known, if it is not that nobody is there.
func (h *handful) why() error {
	if h.read.IsZero() {
		return errNotListed
	}
	return h.err
}

// renew reads a list and picks from it.
func (h *handful) renew(ctx context.Context, list func(context.Context) ([]string, error)) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	all, err := list(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rest = h.restNow()
	if err == nil {
		h.some, h.failed = fewOf(all, h.failed), nil
	}
	h.read, h.err = time.Now(), err
	h.lasts = h.lastsNow()
	close(h.listing)
	h.listing = nil
}

// restNow is for how long failures make nobody list again. It doubles as long as lists do not help:
// where the network between nodes is down, all agents of a cluster fail.
func (h *handful) restNow() time.Duration {
	if len(h.failed) == 0 {
		return jitter(fewLast)
	}
	return min(2*h.rest, handfulLasts)
}

// lastsNow is how long the handful is used.
func (h *handful) lastsNow() time.Duration {
	switch {
	case len(h.some) == 0:
		return jitter(noneLasts)
	case len(h.some) < handfulSize || h.err != nil:
		return jitter(fewLast)
	}
	return jitter(handfulLasts)
}

// fail says that a peer did not answer.
func (h *handful) fail(peer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.some, peer) {
		return
	}
	if h.failed == nil {
		h.failed = map[string]bool{}
	}
	h.failed[peer] = true
}

// fewOf picks a few at random. Those that have failed are picked if there are no others.
func fewOf(all []string, failed map[string]bool) []string {
	all = slices.Clone(all)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	last := func(peer string) int {
		if failed[peer] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(last(a), last(b)) })
	return slices.Clone(all[:min(len(all), handfulSize)]) // not the others as well
}

// jitter makes a time up to a quarter longer, so that agents that start together do not list together.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/4) }
