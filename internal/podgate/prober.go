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
	// A component that says no is asked again after askFirst, then after half as long again each
	// time, up to askLast; one that has said yes after askOn, if it may take that back.
	askFirst = 100 * time.Millisecond
	askLast  = time.Second
	askOn    = 5 * time.Second

	// asking is how many questions of a kind are asked at one time: files do not wait for pods that
	// nobody reaches.
	asking = 64
)

// prober asks components about pods, each question on its own, so that one that is slow delays no
// other. It is safe for concurrent use.
type prober struct {
	ask     func(context.Context, podrule.Probe) podrule.Answer
	metrics *Metrics
	// changed is called for pods of which an answer has changed.
	changed func(types.NamespacedName)
	places  map[podrule.Kind]*semaphore.Weighted

	ctx    context.Context //nolint:containedctx // that of all questions
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu   sync.Mutex
	pods map[types.NamespacedName]*questions
}

// questions are what is asked about one pod, in one sandbox of it: what was answered before does not
// count.
type questions struct {
	of     string
	probes map[podrule.Probe]*question
}

// sandboxOf tells a pod in one sandbox from others.
func sandboxOf(pod *corev1.Pod) string {
	return string(pod.UID) + " " + pod.Status.PodIP + " " + podrule.SandboxSince(pod).Format(time.RFC3339)
}

type question struct {
	cancel context.CancelFunc
	answer podrule.Answer
	known  bool
	// yes is when it was first answered with yes.
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

// stop ends all questions.
func (p *prober) stop() {
	p.cancel()
	p.all.Wait()
}

// answers are what is known of the pod in its sandbox. Of another pod of the same name nothing is.
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

// want asks these questions about the pod from now on, and no others.
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

// end ends all questions but these, and forgets what was answered: who asks again is to hear it anew.
func (q *questions) end(but []podrule.Probe) {
	for probe, one := range q.probes {
		if !slices.Contains(but, probe) {
			one.cancel()
			delete(q.probes, probe)
		}
	}
}

// forget ends all questions about a pod.
func (p *prober) forget(pod types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if about := p.pods[pod]; about != nil {
		about.end(nil)
		delete(p.pods, pod)
	}
}

// times are when questions about a pod were first answered with yes.
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

// pursue asks a question again and again.
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

// once asks a question when there is a place; false if nobody wants to know any more.
func (p *prober) once(ctx context.Context, probe podrule.Probe) (podrule.Answer, bool) {
	places := p.places[probe.Kind]
	if places.Acquire(ctx, 1) != nil {
		return podrule.Answer{}, false
	}
	defer places.Release(1)
	answer := p.ask(ctx, probe)
	return answer, ctx.Err() == nil // what was cut off is no answer
}

// heard keeps an answer, and says whether it changed anything.
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
