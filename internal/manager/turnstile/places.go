package turnstile

import (
	"container/list"
	"time"
)

const (
	// turns is how many requests of a need are let in, one after another, while somebody behind
	// it could be let in instead. The next place is for those behind: nobody starves.
	turns = 7

	// longestPause is the longest time that the server can keep us waiting.
	longestPause = 30 * time.Second
)

// outcome is what became of a request.
type outcome int

const (
	// unknown says nothing about the server: the request was given up, or did not reach it.
	unknown outcome = iota
	// served is an answer of any kind but a refusal.
	served
	// refused says that the server has too much to do.
	refused
)

// pass is one request on its way through the turnstile.
type pass struct {
	need need
	// waits is its place in the queue; nil: it was let in.
	waits *list.Element
	// let is closed when a request that had to wait is let in.
	let chan struct{}
	// shrunk is how often the limit of the need had been shrunk when the request was let in.
	shrunk int
}

// places decides who is let in, and how many. It is told the time, knows no lock, and must be
// asked for the next after every change.
//
// A limit bounds what is under way of a need and those behind it together, so what is less
// needed never takes all places, and the limit of the most needed is that of all. A refusal
// speaks for its need and those behind: their limits are halved and they pause. A request that
// was served speaks for its need and those before: their limits grow, by one place for as many
// requests as there are places.
type places struct {
	most, limit, underWay [needs]int
	waiting               [needs]list.List
	// opens is when the pause of a need ends.
	opens [needs]time.Time
	// taken is how many turns a need has taken while somebody behind it waited.
	taken [needs]int
	// served counts towards the next place, and shrunk how often the limit was halved.
	served, shrunk [needs]int
}

// newPlaces has so many places in all. Half of them are for nodes only, and a quarter at most
// is for events.
func newPlaces(most int) *places {
	p := &places{most: [needs]int{node: max(1, most), other: max(1, most/2), event: max(1, most/4)}}
	p.limit = p.most
	return p
}

// arrive lets a request in where nobody waits and there is a place, else it queues up.
func (p *places) arrive(r *pass, now time.Time) {
	if p.nobodyWaits() && p.fits(r.need, now) {
		p.letIn(r)
		return
	}
	r.waits = p.waiting[r.need].PushBack(r)
}

// next lets in the request whose turn it is; nil: nobody can be let in.
func (p *places) next(now time.Time) *pass {
	for n := range needs {
		if !p.couldEnter(n, now) {
			continue
		}
		if p.contested(n, now) {
			if p.taken[n] == turns {
				p.taken[n] = 0
				continue
			}
			p.taken[n]++
		}
		r := p.waiting[n].Front().Value.(*pass)
		p.waiting[n].Remove(r.waits)
		p.letIn(r)
		return r
	}
	return nil
}

// giveUp takes a request that still waits out of the queue.
func (p *places) giveUp(r *pass) {
	p.waiting[r.need].Remove(r.waits)
	r.waits = nil
}

// leave ends a request that was let in. A pause is what the server asked for with a refusal.
func (p *places) leave(r *pass, o outcome, pause time.Duration, now time.Time) {
	p.underWay[r.need]--
	// What was let in before the limit was last halved tells nothing new about it.
	news := r.shrunk == p.shrunk[r.need]
	switch {
	case o == served && news:
		for n := node; n <= r.need; n++ {
			p.grow(n)
		}
	case o == refused:
		for n := r.need; n < needs; n++ {
			if end := now.Add(pause); end.After(p.opens[n]) {
				p.opens[n] = end
			}
			if news {
				p.limit[n], p.served[n] = max(1, p.limit[n]/2), 0
				p.shrunk[n]++
			}
		}
	}
}

func (p *places) letIn(r *pass) {
	r.waits, r.shrunk = nil, p.shrunk[r.need]
	p.underWay[r.need]++
}

func (p *places) grow(n need) {
	if p.served[n]++; p.served[n] < p.limit[n] {
		return
	}
	p.limit[n], p.served[n] = min(p.most[n], p.limit[n]+1), 0
}

// fits says whether one more request of this need may be under way.
func (p *places) fits(n need, now time.Time) bool {
	if now.Before(p.opens[n]) {
		return false
	}
	sum := 0
	for k := needs - 1; k >= node; k-- {
		sum += p.underWay[k]
		if k <= n && sum >= p.limit[k] {
			return false
		}
	}
	return true
}

func (p *places) couldEnter(n need, now time.Time) bool {
	return p.waiting[n].Len() > 0 && p.fits(n, now)
}

// contested says whether somebody behind this need could be let in, too.
func (p *places) contested(n need, now time.Time) bool {
	for behind := n + 1; behind < needs; behind++ {
		if p.couldEnter(behind, now) {
			return true
		}
	}
	return false
}

func (p *places) nobodyWaits() bool {
	for n := range p.waiting {
		if p.waiting[n].Len() > 0 {
			return false
		}
	}
	return true
}
