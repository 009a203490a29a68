package podgate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/readygate/readygate/internal/podgate/probe"
)

const (
	// goodLasts is how long a token that was found good is believed, at the longest: one that was
	// taken back is good for so long.
	goodLasts = time.Minute
	// badLasts is how long one that was refused is refused.
	badLasts = 10 * time.Second
	// maxTokens is how many of each are remembered: more than there are peers that ask one agent.
	maxTokens = 1024

	// maxReviews is how many tokens the API server is asked about at a time, reviewRate how many in a
	// second and reviewBurst at once. Who makes up tokens that look like those of agents gets no
	// further. Each agent that asks costs one review a minute.
	maxReviews  = 16
	reviewRate  = 10
	reviewBurst = 50
	// reviewLimit is how long a review may take.
	reviewLimit = 2 * time.Second
)

// tokens remembers what the API server has said of tokens. It knows them by their hash. It is safe for
// concurrent use, and bounds itself what strangers can make it cost.
type tokens struct {
	// ask asks the API server. What it does not know now is an error that wraps component.ErrNotNow.
	ask func(ctx context.Context, token string) error

	rate flowcontrol.PassiveRateLimiter
	// good and bad are apart, so that bad ones do not crowd out good ones.
	good, bad *cache.LRUExpireCache

	mu      sync.Mutex
	reviews map[hash]*review
}

type hash = [sha256.Size]byte

// review is a question to the API server. When it is done there is an answer.
type review struct {
	done   chan struct{}
	answer error
}

// settled is a review that is done.
func settled(answer error) *review {
	one := &review{done: make(chan struct{}), answer: answer}
	close(one.done)
	return one
}

func newTokens(ask func(context.Context, string) error) *tokens {
	return &tokens{
		ask: ask, rate: flowcontrol.NewTokenBucketPassiveRateLimiter(reviewRate, reviewBurst),
		good: cache.NewLRUExpireCache(maxTokens), bad: cache.NewLRUExpireCache(maxTokens), reviews: map[hash]*review{},
	}
}

// check says why a token is refused; nil if it is that of an agent. What a token says of itself comes
// first, and what is remembered of it second: both cost next to nothing.
func (t *tokens) check(ctx context.Context, token string) error {
	said, err := claimsOf(token)
	if err != nil {
		return err
	}
	one := t.find(ctx, sha256.Sum256([]byte(token)), token, said)
	select {
	case <-one.done:
		return one.answer
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", probe.ErrNotNow, ctx.Err())
	}
}

// find is the review of a token: a former one, or one that is under way, or else one that begins now.
func (t *tokens) find(ctx context.Context, key hash, token string, said *claims) *review {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.good.Get(key); ok {
		return settled(nil)
	}
	if answer, ok := t.bad.Get(key); ok {
		return settled(answer.(error))
	}
	if one := t.reviews[key]; one != nil {
		return one
	}
	if len(t.reviews) >= maxReviews || !t.rate.TryAccept() {
		return settled(fmt.Errorf("%w: too many tokens that are not known", probe.ErrNotNow))
	}
	one := &review{done: make(chan struct{})}
	t.reviews[key] = one
	go t.review(context.WithoutCancel(ctx), key, token, said, one) // who began it may go, and others wait for it
	return one
}

// review asks the API server, and remembers the answer. That there is none is not remembered.
func (t *tokens) review(ctx context.Context, key hash, token string, said *claims, one *review) {
	ctx, cancel := context.WithTimeout(ctx, reviewLimit)
	defer cancel()
	answer := t.ask(ctx, token)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case answer == nil:
		t.good.Add(key, true, min(goodLasts, time.Until(said.expiry())))
	case !errors.Is(answer, probe.ErrNotNow):
		t.bad.Add(key, answer, badLasts)
	}
	delete(t.reviews, key)
	one.answer = answer
	close(one.done)
}
