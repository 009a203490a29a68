package podgate

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/core/podrule"
)

const (
	// A component that is not ready is probed again after askFirst, then after 1.5 times the previous
	// pause, up to askLast; a ready component after askOn, while the decision still names its probe.
	askFirst = 100 * time.Millisecond
	askLast  = time.Second
	askOn    = 5 * time.Second

	// asking is the maximum number of concurrent probes per kind, so that probes of unreachable pods do not
	// delay probes of files.
	asking = 64
)

// prober probes components, each probe in its own goroutine, so that a slow one does not delay
// others. It is safe for concurrent use.
type prober struct {
	ask     func(context.Context, podrule.Probe) podrule.Answer
	metrics *Metrics
	// changed is called for a pod when an answer about it changes.
	changed func(types.NamespacedName)
	places  map[podrule.Kind]*semaphore.Weighted

	ctx    context.Context //nolint:containedctx // the context of all probes
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu   sync.Mutex
	pods map[types.NamespacedName]*questions
}

// questions are the probes of one pod in one sandbox. Answers about an earlier sandbox do not
// count.
type questions struct {
	of     string
	probes map[podrule.Probe]*question
}

// sandboxOf identifies a sandbox of a pod.
func sandboxOf(pod *corev1.Pod) string {
	return string(pod.UID) + " " + pod.Status.PodIP + " " + podrule.SandboxSince(pod).Format(time.RFC3339)
}

type question struct {
	cancel context.CancelFunc
	answer podrule.Answer
	known  bool
	// yes is the time of the first positive answer.
	yes time.Time
}

func newProber(ask func(context.Context, podrule.Probe) podrule.Answer, metrics *Metrics, changed func(types.NamespacedName)) *prober {
	p := &prober{ask: ask, metrics: metrics, changed: changed, places: map[podrule.Kind]*semaphore.Weighted{}, pods: map[types.NamespacedName]*questions{}}
	for _, kind := range []podrule.Kind{podrule.File, podrule.HTTP, podrule.Reach} {
		p.places[kind] = semaphore.NewWeighted(asking)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// stop ends all probes.
func (p *prober) stop() {
	p.cancel()
	p.all.Wait()
}

// answers returns the answers about a pod in its current sandbox; none for another pod of the same name.
func (p *prober) answers(pod *corev1.Pod) podrule.Answers {
	key, of := keyOf(pod), sandboxOf(pod)
	return func(probe podrule.Probe) (podrule.Answer, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		about := p.pods[key]
		if about == nil || about.of != of || about.probes[probe] == nil {
			return podrule.Answer{}, false
		}
		q := about.probes[probe]
		return q.answer, q.known
	}
}

// want starts the given probes of a pod and ends all others.
func (p *prober) want(pod *corev1.Pod, probes []podrule.Probe) {
	key, of := keyOf(pod), sandboxOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	about := p.pods[key]
	if about != nil && about.of != of {
		about.end(nil)
		about = nil
	}
	if about == nil {
		about = &questions{of: of, probes: map[podrule.Probe]*question{}}
	}
	about.end(probes)
	for _, probe := range probes {
		if about.probes[probe] == nil {
			ctx, cancel := context.WithCancel(p.ctx)
			q := &question{cancel: cancel}
			about.probes[probe] = q
			p.all.Go(func() { p.pursue(ctx, key, probe, q) })
		}
	}
	if len(probes) == 0 {
		delete(p.pods, key)
	} else {
		p.pods[key] = about
	}
}

// end ends all probes except the given ones, and drops their answers: a later probe starts again.
func (q *questions) end(but []podrule.Probe) {
	for probe, one := range q.probes {
		if !slices.Contains(but, probe) {
			one.cancel()
			delete(q.probes, probe)
		}
	}
}

// forget ends all probes of a pod.
func (p *prober) forget(pod types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if about := p.pods[pod]; about != nil {
		about.end(nil)
		delete(p.pods, pod)
	}
}

// times returns when the probes of a pod first succeeded.
func (p *prober) times(pod types.NamespacedName) map[podrule.Probe]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	times := map[podrule.Probe]time.Time{}
	if about := p.pods[pod]; about != nil {
		for probe, q := range about.probes {
			if q.answer.Yes {
				times[probe] = q.yes
			}
		}
	}
	return times
}

// pursue repeats a probe until the context ends.
func (p *prober) pursue(ctx context.Context, pod types.NamespacedName, probe podrule.Probe, q *question) {
	rest, no := askFirst, 0
	for {
		answer, ok := p.once(ctx, probe)
		if !ok {
			return
		}
		p.metrics.asked(probe, answer)
		if answer.Yes {
			rest, no = askFirst, 0
		} else {
			no++
		}
		answer.Noes = min(no, podrule.Refusals)
		if p.heard(q, answer) {
			p.changed(pod)
		}
		pause := rest
		if answer.Yes {
			pause = askOn
		} else {
			rest = min(rest+rest/2, askLast)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// once runs a probe when there is capacity; false if the context has ended.
func (p *prober) once(ctx context.Context, probe podrule.Probe) (podrule.Answer, bool) {
	places := p.places[probe.Kind]
	if places.Acquire(ctx, 1) != nil {
		return podrule.Answer{}, false
	}
	defer places.Release(1)
	answer := p.ask(ctx, probe)
	return answer, ctx.Err() == nil // a cancelled probe has no answer
}

// heard records an answer and reports whether it changed.
func (p *prober) heard(q *question, answer podrule.Answer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := !q.known || q.answer != answer
	if answer.Yes && !q.answer.Yes {
		q.yes = time.Now()
	}
	q.answer, q.known = answer, true
	return changed
}
