package ownership

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/internal/readiness"
)

const (
	// maxAttempts is how many failures in a row make callers wait. After that, and after a refusal,
	// nodes are held without an entry: a pod that starts too early is worse than a leftover.
	maxAttempts = 5

	// After a refusal the write is retried after retryFirst, then twice as long each time, up to
	// retryLast.
	retryFirst = time.Second
	retryLast  = 5 * time.Minute
)

// List is the list as the leader knows it: read once, then kept in memory. All exported fields are
// required. It is safe for concurrent use.
type List struct {
	// Live reads past any cache.
	Live   client.Reader
	Client client.Client
	// Namespace is that of the ConfigMap.
	Namespace string
	Clock     clock.PassiveClock

	// entered is a book whose rules are all in the list.
	entered atomic.Pointer[readiness.Rulebook]
	taints  atomic.Pointer[readiness.RuleTaints]

	mu        sync.Mutex
	onChange  func()
	malformed []string
	failures  int
	problem   error
	retry     time.Time
}

// OnChange calls f, which must not block, whenever Problem may have changed.
func (l *List) OnChange(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onChange = f
}

// Taints are all entries; nil until the list was read. Callers must not change them.
func (l *List) Taints() readiness.RuleTaints {
	if taints := l.taints.Load(); taints != nil {
		return *taints
	}
	return nil
}

// Problem is why the list cannot be read or written, nil if it can, and after how long that is tried
// again.
func (l *List) Problem() (retry time.Duration, problem error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem == nil {
		return 0, nil
	}
	return max(l.retry.Sub(l.Clock.Now()), retryFirst), l.problem
}

// Enter returns when all rules of the book are in the list. It fails while that may succeed in a
// moment. It also returns nil while the API server refuses the write: Problem reports that.
func (l *List) Enter(ctx context.Context, book *readiness.Rulebook) error {
	if l.entered.Load() == book {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem != nil && l.Clock.Now().Before(l.retry) {
		return nil
	}
	err := l.enter(ctx, book)
	if err == nil {
		l.succeed()
		l.entered.Store(book)
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	return l.fail(ctx, err)
}

func (l *List) enter(ctx context.Context, book *readiness.Rulebook) error {
	if l.Taints() == nil {
		taints, malformed, err := Read(ctx, l.Live, l.Namespace)
		if err != nil {
			return err
		}
		l.store(ctx, taints, malformed)
	}
	known, missing := l.Taints(), readiness.RuleTaints{}
	for _, rule := range book.Rules() {
		if taint, ok := known[rule.UID]; !ok || taint != rule.ID() {
			missing[rule.UID] = rule.ID()
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return l.write(ctx, missing, nil)
}

// Remove removes entries. A failure is returned, to be retried.
func (l *List) Remove(ctx context.Context, rules []types.UID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entered.Store(nil) // a book that still has one of the rules must enter it again
	return l.write(ctx, nil, rules)
}

func (l *List) write(ctx context.Context, add readiness.RuleTaints, remove []types.UID) error {
	obj, err := write(ctx, l.Client, l.Namespace, l.Taints(), add, remove)
	if err != nil {
		return err
	}
	taints, malformed := entriesOf(obj)
	l.store(ctx, taints, malformed)
	log.FromContext(ctx).Info("List of rule taints written", "configMap", l.Namespace+"/"+ConfigMapName, "added", len(add), "removed", len(remove), "entries", len(taints))
	return nil
}

// store keeps what the ConfigMap has. Entries that cannot be read are logged once.
func (l *List) store(ctx context.Context, taints readiness.RuleTaints, malformed []string) {
	if len(malformed) > 0 && !slices.Equal(malformed, l.malformed) {
		log.FromContext(ctx).Info("Ignored malformed entries of the list of rule taints; each value must be key:effect of a taint that rules may manage",
			"configMap", l.Namespace+"/"+ConfigMapName, "keys", malformed[:min(len(malformed), 10)], "count", len(malformed))
	}
	l.malformed = malformed
	l.taints.Store(&taints)
}

func (l *List) succeed() {
	changed := l.problem != nil
	l.problem, l.failures = nil, 0
	if changed && l.onChange != nil {
		l.onChange()
	}
}

// fail returns the error if the caller is to try again.
func (l *List) fail(ctx context.Context, err error) error {
	l.failures++
	if !isRefusal(err) && l.failures < maxAttempts {
		return err
	}
	news := l.problem == nil
	l.problem = err
	l.retry = l.Clock.Now().Add(min(retryFirst<<min(l.failures-1, 10), retryLast))
	if news {
		log.FromContext(ctx).Error(err, "Cannot write the list of rule taints: nodes are held without an entry, and leftovers of force-deleted rules will not be removed")
		if l.onChange != nil {
			l.onChange()
		}
	}
	return nil
}

// isRefusal reports whether the API server will answer the same until a user changes something: a role,
// a policy, the namespace or the ConfigMap.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsRequestEntityTooLargeError(err)
}
