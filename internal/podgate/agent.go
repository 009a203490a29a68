package podgate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/liveread"
	"github.com/readygate/readygate/internal/text"
)

// maxPods is an upper limit for the pods of a node.
const maxPods = 2048

// settling is how long after its start the agent ignores a sandbox that appears to be from before
// the node's boot. By then the kubelet, which started the agent, has synced all other pods.
const settling = 2 * time.Minute

// Limits for how other latches of the node affect the next touch of a closed latch.
const (
	// lately is how long a latch counts. A latch that has not ended by then waits for something else, and an
	// older duration no longer applies.
	lately = time.Minute
	// slowestLatch is the longest duration that counts. A latch that took longer also missed its key until the
	// kubelet's next periodic sync.
	slowestLatch = 40 * time.Second
)

// Backoff of a pod whose write failed.
const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 30 * time.Second
)

// Agent reconciles the pods of one node. All exported fields are required.
type Agent struct {
	// API patches the status of pods and reads a namespace without the cache.
	API kubernetes.Interface
	// Sources are the caches of the API server's objects.
	Sources *Sources
	// Ask runs a probe of a component.
	Ask func(context.Context, podrule.Probe) podrule.Answer
	// Boot is the boot ID of the node; empty if unknown.
	Boot    string
	Workers int
	Events  events.EventRecorder
	Metrics *Metrics
	Clock   clock.WithTicker
	// Changed is called when the tallies may have changed.
	Changed func()

	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	prober  *prober
	overlay cache.MutationCache

	// live reads the rules without the cache: one request serves many pods at once.
	live    liveread.Shared[[]*podrule.Rule]
	settles time.Time

	mu   sync.Mutex
	pods map[types.NamespacedName]*podState
	// slowest is the longest time from a latch key's write to the end of its latch, recorded at slowestAt.
	slowest   time.Duration
	slowestAt time.Time
}

// podState is the agent's state of a pod in memory. Decisions do not depend on it, with two exceptions: the time at
// which the agent first saw a sandbox of which nothing is written yet, and the agent's own earlier decisions.
type podState struct {
	uid types.UID
	// sandbox is the pod's sandbox, first seen at seen.
	sandbox latchkey.Sandbox
	seen    time.Time
	// decision is the last one, for the tallies.
	decision podrule.Decision
	// written is when the agent last wrote the latch key of the pod.
	written time.Time
	// reported lists the emitted events: rules whose deadline the pod missed, and other kinds.
	reported []string
	// history is written by one worker at a time: a pod is in the queue once.
	history podrule.History
}

// start starts the watches and returns when all caches are synced: without the rules the agent would open every gate.
func (a *Agent) start(ctx context.Context) error {
	a.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryFirst, retryLast),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "pods"})
	a.prober = newProber(a.Ask, a.Metrics, func(pod types.NamespacedName) { a.queue.Add(pod) })
	a.overlay = cache.NewIntegerResourceVersionMutationCacheWithOptions(log.FromContext(ctx), a.Sources.Pods.GetStore(), cache.MutationCacheOptions{TTL: time.Minute, MaxCacheSize: maxPods})
	err := a.Sources.start(ctx, a.queue.Add, a.all)
	a.settles = a.Clock.Now().Add(settling)
	return err
}

// run reconciles pods until the context ends.
func (a *Agent) run(ctx context.Context) {
	log.FromContext(ctx).Info("Caches synced; reconciling pods", "rules", len(a.Sources.Rules()), "pods", len(a.Sources.Pods.GetStore().ListKeys()))
	var workers sync.WaitGroup
	for range a.Workers {
		workers.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	a.queue.ShutDown()
	workers.Wait()
	a.prober.stop()
}

// all enqueues the pods of a namespace, or of all namespaces.
func (a *Agent) all(in string) {
	for _, obj := range a.Sources.Pods.GetStore().List() {
		if pod := obj.(*corev1.Pod); in == metav1.NamespaceAll || in == pod.Namespace {
			a.queue.Add(keyOf(pod))
		}
	}
	a.Changed()
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (a *Agent) next(ctx context.Context) bool {
	key, done := a.queue.Get()
	if done {
		return false
	}
	defer a.queue.Done(key)
	requeueAfter, err := a.reconcile(ctx, key)
	if err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Reconciling a pod failed; retrying with backoff", "pod", key)
		}
		a.queue.AddRateLimited(key)
		return true
	}
	a.queue.Forget(key)
	if requeueAfter > 0 {
		a.queue.AddAfter(key, requeueAfter)
	}
	return true
}

// reconcile decides the gates of one pod and patches the pod if they change. It returns when to reconcile the pod
// again; zero: after the next change.
func (a *Agent) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	obj, found, err := a.overlay.GetByKey(key.String())
	if err != nil {
		return 0, err
	}
	if !found {
		a.forget(key)
		return 0, nil
	}
	subject := a.subject(obj.(*corev1.Pod), a.Sources.Namespace(key.Namespace))
	now := a.Clock.Now()
	subject.Seen, subject.Written, subject.History = a.seen(subject, now)
	subject.Delivers = true
	subject.OthersClosed, subject.SlowestLatch = a.latches(key, now)
	d := podrule.Decide(a.Sources.Rules(), subject, a.prober.answers(subject.Pod), now)
	if d.NeedsLiveRules(subject.Pod) {
		if d, err = a.decideLive(ctx, subject, now); err != nil {
			return 0, err
		}
	}
	a.prober.want(subject.Pod, d.Probes)
	a.remember(subject.Pod, d)
	if d.Patch != nil {
		if err := a.write(ctx, subject, &d, now); err != nil {
			if unanswered(err) {
				subject.History.RecordUnanswered(subject, &d, now)
			}
			return 0, err
		}
	}
	subject.History.Record(subject, &d, now)
	a.report(subject.Pod, &d)
	if d.Until.IsZero() {
		return 0, nil
	}
	return max(d.Until.Sub(now), time.Millisecond), nil
}

func (a *Agent) subject(pod *corev1.Pod, namespace map[string]string) *podrule.Subject {
	return &podrule.Subject{Pod: pod, Namespace: namespace, Node: podrule.Node{Conditions: a.Sources.NodeConditions(), BootID: a.Boot, Booted: boot.Time(), Settles: a.settles}}
}

// latches returns the number of other pods whose key was written lately and whose latch is
// closed, and the longest time that a latch of the node took lately.
func (a *Agent) latches(pod types.NamespacedName, now time.Time) (closed int, slowest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, m := range a.pods {
		since := m.written
		if since.IsZero() { // written by a previous agent
			since = m.decision.LatchClosed
		}
		if other != pod && !m.decision.LatchClosed.IsZero() && now.Sub(since) < lately {
			closed++
		}
	}
	if now.Sub(a.slowestAt) < lately {
		slowest = a.slowest
	}
	return closed, slowest
}

// timeLatch records how long the latch of a pod ran after its key was written. It ignores a touched
// key: any of the writes may have ended the latch. The caller holds the lock.
func (a *Agent) timeLatch(pod *corev1.Pod, m *podState) {
	key, _ := latchkey.Parse(pod.Annotations[v1alpha1.LatchAnnotation])
	if m.decision.LatchClosed.IsZero() || !podrule.LatchEnded(pod) || m.written.IsZero() || key.Touches > 0 {
		return
	}
	now := a.Clock.Now()
	a.noteSlow(min(now.Sub(m.written), now.Sub(podrule.LatchStarted(pod))), now)
}

// noteSlow records a lower bound for the time that latches of the node take. The caller holds the lock.
func (a *Agent) noteSlow(took time.Duration, now time.Time) {
	if took = min(took, slowestLatch); took >= a.slowest || now.Sub(a.slowestAt) >= lately {
		a.slowest, a.slowestAt = took, now
	}
}

// seen returns when the agent first saw the pod's sandbox, when it last wrote the latch key, and its
// earlier decisions for the pod.
func (a *Agent) seen(s *podrule.Subject, now time.Time) (seen, written time.Time, history *podrule.History) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, sandbox := a.stateOf(s.Pod), s.Sandbox()
	if !m.sandbox.Same(sandbox) || m.seen.IsZero() {
		m.sandbox, m.seen = sandbox, now
	}
	return m.seen, m.written, &m.history
}

// decideLive decides without the caches. The API server gave the pod a gate because a rule selects it: the agent
// must not open the gate because its cache lacks that rule or the labels of the namespace.
func (a *Agent) decideLive(ctx context.Context, s *podrule.Subject, now time.Time) (podrule.Decision, error) {
	rules, err := a.live.Read(now, a.Clock.Now, func() ([]*podrule.Rule, error) { return a.Sources.LiveRules(ctx) })
	if err != nil {
		return podrule.Decision{}, fmt.Errorf("reading the rules for a gate that no cached rule requires: %w", err)
	}
	namespace, err := a.API.CoreV1().Namespaces().Get(ctx, s.Pod.Namespace, metav1.GetOptions{})
	if err != nil {
		return podrule.Decision{}, fmt.Errorf("reading the namespace for a gate that no cached rule requires: %w", err)
	}
	live := *s
	live.Namespace = namespace.Labels
	return podrule.Decide(rules, &live, a.prober.answers(s.Pod), now), nil
}

// write sends the patch of a decision in one request.
func (a *Agent) write(ctx context.Context, s *podrule.Subject, d *podrule.Decision, now time.Time) error {
	var written *corev1.Pod
	err := d.Patch.Send(s.Pod.UID, func(patch []byte) (err error) {
		written, err = a.API.CoreV1().Pods(s.Pod.Namespace).Patch(ctx, s.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		a.Metrics.patched(err)
		return err
	})
	switch {
	case podrule.Missed(err): // the pod has changed; the watch delivers it
		return nil
	case podrule.Full(err): // the watch delivers the next change of the annotations
		a.reportFull(s.Pod)
		return nil
	case err != nil:
		return fmt.Errorf("patching the status of the pod: %w", err)
	}
	a.overlay.Mutation(strip(written))
	if d.Patch.Key != s.Pod.Annotations[v1alpha1.LatchAnnotation] {
		a.mu.Lock()
		a.stateOf(s.Pod).written = a.Clock.Now()
		a.mu.Unlock()
	}
	if d.Patch.Touch {
		a.Metrics.touches.Inc()
		log.FromContext(ctx).Info("Wrote the latch key again because the latch is still closed", "pod", keyOf(s.Pod), "key", d.Patch.Key)
	}
	a.opened(ctx, s.Pod, d, now)
	return nil
}

// unanswered reports whether the API server may have applied a failed write: it has not rejected it.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// opened logs the gates that a write opened and closed, and updates their metrics and events.
func (a *Agent) opened(ctx context.Context, pod *corev1.Pod, d *podrule.Decision, now time.Time) {
	for _, condition := range d.Patch.Conditions {
		log.FromContext(ctx).Info("Patched gate", "pod", keyOf(pod), "gate", condition.Type, "status", condition.Status, "reason", condition.Reason)
		i := slices.IndexFunc(d.Verdicts, func(v podrule.Verdict) bool { return v.Gate == string(condition.Type) })
		if i < 0 || condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Reason {
		case v1alpha1.ReasonAllReady:
			a.Metrics.ready(pod, &d.Verdicts[i], a.prober.times(keyOf(pod)), now)
		case v1alpha1.ReasonDeadline:
			a.warn(pod, v1alpha1.EventOpened, v1alpha1.ActionOpen, condition.Message)
		}
	}
}

// reportFull emits an event, once, for a pod whose annotations have no room for the latch key.
func (a *Agent) reportFull(pod *corev1.Pod) {
	if a.isFirst(pod, v1alpha1.LatchAnnotation) { // not a valid rule name
		a.warn(pod, v1alpha1.EventFull, v1alpha1.ActionUnlatch,
			fmt.Sprintf("the annotations of the pod are full: podgate cannot add annotation %s, which ends the latch, and the containers do not start; remove other annotations", v1alpha1.LatchAnnotation))
	}
}

// report emits an event for a pod that has missed a deadline, once per rule; for a gate that another account has set
// to True, once; and for a latch that stays closed, once.
func (a *Agent) report(pod *corev1.Pod, d *podrule.Decision) {
	if d.LatchStuck && a.isFirst(pod, v1alpha1.EventLatchClosed) { // not a valid rule name
		a.warn(pod, v1alpha1.EventLatchClosed, v1alpha1.ActionUnlatch,
			fmt.Sprintf("%s since %s: podgate wrote annotation %s several times, and the latch has not ended; see the kubelet's log on node %s and the log of container %s",
				podrule.LatchClosedWords, d.LatchClosed.UTC().Format(time.RFC3339), v1alpha1.LatchAnnotation, pod.Spec.NodeName, v1alpha1.LatchName))
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Undecided() && a.isFirst(pod, v1alpha1.EventForeign) { // not a valid rule name
			a.warn(pod, v1alpha1.EventForeign, v1alpha1.ActionSetBack, foreignNote(pod, v))
		}
		for _, rule := range v.Late {
			if !v.Open && a.isFirst(pod, rule.Name) {
				a.warn(pod, v1alpha1.EventLate, v1alpha1.ActionAwait, fmt.Sprintf("the pod has waited longer than deadlineSeconds (%s) of rule %s: %s", rule.Deadline, rule.Name, v.Message))
			}
		}
	}
}

func (a *Agent) warn(pod *corev1.Pod, reason, action, note string) {
	a.Events.Eventf(pod, nil, corev1.EventTypeWarning, reason, action, "%s", text.Cut(note, text.Event))
}

// foreignNote describes a gate that another account has set to True. The name is the field manager of that client.
func foreignNote(pod *corev1.Pod, v *podrule.Verdict) string {
	writer := "another account"
	if name := podrule.Writers(pod.ManagedFields)[v.Gate]; name != "" {
		writer = fmt.Sprintf("%q", text.Cut(name, 64))
	}
	return fmt.Sprintf("Gate %s was set to True by %s, not by Readygate. Podgate sets it back to False up to 3 times unless the pod has been Ready, and keeps the start hold. For what to do: kubectl readiness why pod/%s -n %s. Status: %s",
		v.Gate, writer, pod.Name, pod.Namespace, v.Message)
}

// isFirst reports whether the agent has not emitted an event of this kind for the pod, and records it. The kind is the
// name of a rule, or a value that is not a valid rule name.
func (a *Agent) isFirst(pod *corev1.Pod, kind string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.pods[keyOf(pod)]
	if m == nil || slices.Contains(m.reported, kind) {
		return false
	}
	m.reported = append(m.reported, kind)
	return true
}

// remember records the last decision.
func (a *Agent) remember(pod *corev1.Pod, d podrule.Decision) {
	a.mu.Lock()
	m := a.stateOf(pod)
	a.timeLatch(pod, m)
	if d.Patch != nil && d.Patch.Touch && !m.written.IsZero() {
		// The kubelet may only be slow: the next touch, of any pod of the node, waits longer. So many pods
		// on a node with a slow kubelet cost only a few touches.
		now := a.Clock.Now()
		a.noteSlow(now.Sub(m.written), now)
	}
	m.decision = d
	a.mu.Unlock()
	a.Changed()
}

// stateOf returns the state of a pod, and adds it if there is none. The caller holds the lock.
func (a *Agent) stateOf(pod *corev1.Pod) *podState {
	if a.pods == nil {
		a.pods = map[types.NamespacedName]*podState{}
	}
	m := a.pods[keyOf(pod)]
	if m == nil || m.uid != pod.UID {
		m = &podState{uid: pod.UID}
		a.pods[keyOf(pod)] = m
	}
	return m
}

func (a *Agent) forget(key types.NamespacedName) {
	a.prober.forget(key)
	a.mu.Lock()
	delete(a.pods, key)
	a.mu.Unlock()
	a.Changed()
}

// Tallies counts the pods of the node by the rules that select them. It does not count a pod that the agent has not
// reconciled yet.
func (a *Agent) Tallies() map[*podrule.Rule]*podrule.Tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	tallies := map[*podrule.Rule]*podrule.Tally{}
	for _, rule := range a.Sources.Rules() {
		tallies[rule] = &podrule.Tally{}
	}
	for _, obj := range a.Sources.Pods.GetStore().List() {
		pod := obj.(*corev1.Pod)
		m := a.pods[keyOf(pod)]
		if m == nil || m.uid != pod.UID {
			continue
		}
		subject := a.subject(pod, a.Sources.Namespace(pod.Namespace))
		for rule, tally := range tallies {
			tally.Count(rule, subject, &m.decision)
		}
	}
	return tallies
}
