package ruletaints

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/internal/core/noderule"
)

const (
	// maxAttempts is the number of consecutive failures during which callers wait. After that, or after a rejection or a
	// timeout, nodes are held without an entry: a pod that starts too early is worse than a leftover.
	maxAttempts = 5

	// Then the write is retried after retryFirst, and after twice as long each time, up to retryLast.
	retryFirst = time.Second
	retryLast  = 5 * time.Minute

	// requestTimeout bounds the requests of one call. Reconciles of all nodes may wait for them.
	requestTimeout = 5 * time.Second

	// refreshInterval is the minimum time between two reads by Refresh.
	refreshInterval = 5 * time.Minute

	// maxWrites is the maximum number of writes of one Enter: another client may remove entries meanwhile.
	maxWrites = 3
)

// List is the leader's copy of the list, in memory. It is safe for concurrent use.
type List struct {
	live      client.Reader
	client    client.Client
	namespace string
	clock     clock.PassiveClock

	// entered is a book whose rules are all in the list.
	entered atomic.Pointer[noderule.Rulebook]
	taints  atomic.Pointer[noderule.RuleTaints]

	// requests is held during a request. The fields below need mu, which is never held during a request.
	requests  *semaphore.Weighted
	mu        sync.Mutex
	onChange  []func()
	malformed []string
	failures  int
	problem   error
	retry     time.Time
	read      time.Time
}

// New returns the list in the ConfigMap of this namespace. The first Enter reads it from the API server.
func New(live client.Reader, c client.Client, namespace string, clock clock.PassiveClock) *List {
	return &List{live: live, client: c, namespace: namespace, clock: clock, requests: semaphore.NewWeighted(1)}
}

// OnChange calls f, which must not block, whenever Problem may have changed, and after the first successful read if an
// earlier one failed.
func (l *List) OnChange(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onChange = append(l.onChange, f)
}

func (l *List) changed() {
	l.mu.Lock()
	listeners := slices.Clone(l.onChange)
	l.mu.Unlock()
	for _, f := range listeners {
		f()
	}
}

// Taints returns all entries; nil until the list was read. Callers must not change them.
func (l *List) Taints() noderule.RuleTaints {
	if taints := l.taints.Load(); taints != nil {
		return *taints
	}
	return nil
}

// Problem returns why the list cannot be read or written, and the time to the next attempt; nil if there is no problem.
func (l *List) Problem() (retry time.Duration, problem error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem == nil {
		return 0, nil
	}
	return max(l.retry.Sub(l.clock.Now()), retryFirst), l.problem
}

// Enter returns nil when all rules of the book are in the list, and also while the list cannot be written: Problem then
// returns the error. It returns an error if the caller is to retry.
func (l *List) Enter(ctx context.Context, book *noderule.Rulebook) error {
	if l.complete(book) || l.resting() {
		return nil
	}
	_, problem := l.Problem()
	if !l.acquire(ctx, problem == nil) {
		return ctx.Err()
	}
	defer l.requests.Release(1)
	if l.complete(book) || l.resting() { // after the concurrent call
		return nil
	}
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := l.enter(request, book)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return l.fail(ctx, err, request.Err() != nil)
}

func (l *List) enter(ctx context.Context, book *noderule.Rulebook) error {
	if l.Taints() == nil {
		if err := l.reread(ctx); err != nil {
			return err
		}
	}
	for writes := 0; !l.complete(book); writes++ {
		if writes == maxWrites {
			return fmt.Errorf("writing the list of rule taints, ConfigMap %s/%s: entries are missing after %d writes; another client removes them", l.namespace, ConfigMapName, writes)
		}
		if err := l.write(ctx, l.missing(book), nil); err != nil {
			return err
		}
	}
	return nil
}

// acquire reserves the right to send a request. If another request is in flight, it waits until the context ends, or
// returns false if wait is false.
func (l *List) acquire(ctx context.Context, wait bool) bool {
	if !wait {
		return l.requests.TryAcquire(1)
	}
	return l.requests.Acquire(ctx, 1) == nil
}

// complete reports whether all rules of the book are in the list. If they are, it clears the problem.
func (l *List) complete(book *noderule.Rulebook) bool {
	if l.entered.Load() == book {
		return true
	}
	l.mu.Lock()
	if l.Taints() == nil || len(l.missing(book)) > 0 {
		l.mu.Unlock()
		return false
	}
	l.entered.Store(book)
	solved := l.problem != nil
	l.problem, l.failures = nil, 0
	l.mu.Unlock()
	if solved {
		l.changed()
	}
	return true
}

// resting reports whether there is a problem and the next attempt is not due.
func (l *List) resting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.problem != nil && l.clock.Now().Before(l.retry)
}

// missing returns the rules of the book that are not in the list, except rules with an invalid taint.
func (l *List) missing(book *noderule.Rulebook) noderule.RuleTaints {
	known, missing := l.Taints(), noderule.RuleTaints{}
	for uid, taint := range book.Taints() {
		if _, valid := noderule.ParseTaint(taint.String()); valid && known[uid] != taint {
			missing[uid] = taint
		}
	}
	return missing
}

// Remove removes entries. If it returns an error, the entries are unknown until Refresh.
func (l *List) Remove(ctx context.Context, rules []types.UID) error {
	if !l.acquire(ctx, true) {
		return ctx.Err()
	}
	defer l.requests.Release(1)
	kept := maps.Clone(l.Taints())
	for _, uid := range rules {
		delete(kept, uid)
	}
	l.mu.Lock()
	l.taints.Store(&kept)
	l.entered.Store(nil) // a book that still has one of the rules must enter it again
	l.read = time.Time{}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.write(ctx, nil, rules)
}

// Refresh reads the list again if refreshInterval has passed or a removal has failed: another client may have changed it.
func (l *List) Refresh(ctx context.Context) error {
	l.mu.Lock()
	due := l.Taints() != nil && l.clock.Since(l.read) >= refreshInterval
	l.mu.Unlock()
	if !due {
		return nil
	}
	if !l.acquire(ctx, true) {
		return ctx.Err()
	}
	defer l.requests.Release(1)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.reread(ctx)
}

func (l *List) reread(ctx context.Context) error {
	taints, malformed, err := Read(ctx, l.live, l.namespace)
	if err == nil {
		l.store(ctx, taints, malformed)
	}
	return err
}

func (l *List) write(ctx context.Context, add noderule.RuleTaints, remove []types.UID) error {
	obj, err := write(ctx, l.client, l.namespace, l.Taints(), add, remove)
	if err != nil {
		return err
	}
	taints, malformed := entriesOf(obj)
	l.store(ctx, taints, malformed)
	log.FromContext(ctx).Info("List of rule taints written", "configMap", l.namespace+"/"+ConfigMapName, "added", len(add), "removed", len(remove), "entries", len(taints))
	return nil
}

// store stores the entries of the ConfigMap, and logs malformed ones once.
func (l *List) store(ctx context.Context, taints noderule.RuleTaints, malformed []string) {
	l.mu.Lock()
	if len(malformed) > 0 && !slices.Equal(malformed, l.malformed) {
		log.FromContext(ctx).Info("Ignored malformed entries of the list of rule taints; each value must be key:effect of a taint that rules may manage",
			"configMap", l.namespace+"/"+ConfigMapName, "keys", malformed[:min(len(malformed), 10)], "count", len(malformed))
	}
	late := l.Taints() == nil && l.problem != nil
	l.malformed, l.read = malformed, l.clock.Now()
	l.entered.Store(nil)
	l.taints.Store(&taints)
	l.mu.Unlock()
	if late {
		l.changed()
	}
}

// fail returns the error if the caller is to retry.
func (l *List) fail(ctx context.Context, err error, timeout bool) error {
	l.mu.Lock()
	l.failures++
	if !timeout && !isRefusal(err) && l.failures < maxAttempts {
		l.mu.Unlock()
		return err
	}
	first := l.problem == nil
	l.problem = err
	l.retry = l.clock.Now().Add(min(retryFirst<<min(l.failures-1, 10), retryLast))
	l.mu.Unlock()
	if first {
		log.FromContext(ctx).Error(err, "Writing the list of rule taints failed; until it succeeds, nodes are held without an entry, and leftovers of force-deleted rules are not removed")
		l.changed()
	}
	return nil
}

// isRefusal reports whether the API server will return the same error until a role, a policy, the namespace or the
// ConfigMap changes.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsRequestEntityTooLargeError(err)
}
