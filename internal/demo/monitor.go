package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// monitor watches every version of the nodes and pods of a scenario, and records the data to check the invariants.
type monitor struct {
	now          func() time.Time
	requirements map[string][]requirement // conditions that a gate requires, by gate

	mu         sync.Mutex
	nodes      map[string]*history
	pods       map[string]podVersion
	joinTaints map[string][]corev1.Taint // initial taints, by node

	binds         []bind
	openings      []opening
	lostTaints    []string // initial taints that were removed
	unheldBoots   []string // nodes that no rule held after a reboot
	readyTooEarly []string // pods that were Ready before their gate was open

	taintChecks, reboots, holds, releases int
	opens                                 int             // opened gates, for any reason
	readied                               int             // pods with a gate that became Ready
	delays                                []time.Duration // from the last condition True to the release of the node
	gateDelays                            []time.Duration // from the last component ready to the open gate
}

// requirement is the condition that a component of a rule must have.
type requirement struct {
	component string
	condition string
	status    corev1.ConditionStatus
	ofNode    bool
}

// history is the history of one node.
type history struct {
	versions []nodeVersion
	lastTrue time.Time // when a condition last became True
}

// nodeVersion is a state of a node that differs from the previous one.
type nodeVersion struct {
	number   uint64                            // resourceVersion: one counter for all objects of a cluster
	taints   []corev1.Taint                    // of rules
	statuses map[string]corev1.ConditionStatus // of conditions
	boot     string                            // bootID
}

// podVersion is the current state of a pod.
type podVersion struct {
	scenario.PodState
	statuses map[string]corev1.ConditionStatus // of conditions
	lastTrue time.Time                         // when a component last became ready for the pod
}

// bind is the binding of a pod to a node.
type bind struct {
	pod, node   string
	number      uint64
	tolerations []corev1.Toleration
}

// opening is a gate that was opened because all components were ready.
type opening struct {
	pod, node, gate string
	number          uint64
	missing         []string // components whose pod conditions were not met at that time
}

func newMonitor(now func() time.Time) *monitor {
	return &monitor{now: now, nodes: map[string]*history{}, pods: map[string]podVersion{}, joinTaints: map[string][]corev1.Taint{}}
}

// watch passes nodes and pods to the monitor, and pods to the simulated components, until the context ends.
// It returns when the caches are synced.
func (s *session) watch(ctx context.Context) error {
	api, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(api, 0, informers.WithNamespace(Namespace))
	nodes, pods := factory.Core().V1().Nodes().Informer(), factory.Core().V1().Pods().Informer()
	_, errNodes := nodes.AddEventHandler(handler(s.monitor.observeNode, func(string) {}))
	_, errPods := pods.AddEventHandler(handler(s.monitor.observePod, s.monitor.forgetPod))
	_, errComponents := pods.AddEventHandler(handler(func(pod *corev1.Pod) { s.podComponents.observe(ctx, pod) }, s.podComponents.forget))
	if err := errors.Join(errNodes, errPods, errComponents); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	s.programs.Go(func() error { // no handler may run after the session
		<-ctx.Done()
		factory.Shutdown()
		return nil
	})
	factory.WaitForCacheSyncWithContext(ctx)
	return ctx.Err()
}

// handler calls observe for each version of an object, and forget with the name of a deleted object.
func handler[T any](observe func(T), forget func(name string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { observe(obj.(T)) },
		UpdateFunc: func(_, obj any) { observe(obj.(T)) },
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				forget(key.Name)
			}
		},
	}
}

// ofRules returns the taints of a node that only rules may manage, without PreferNoSchedule taints.
func ofRules(node *corev1.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && ofRule(taint.Key) {
			taints = append(taints, taint)
		}
	}
	return taints
}

// ofRule reports whether only rules may manage taints with this key.
func ofRule(key string) bool {
	return slices.ContainsFunc(v1alpha1.TaintPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// at returns the version of the node at a resourceVersion of the cluster; the zero version if there was none.
func (h *history) at(number uint64) nodeVersion {
	var at nodeVersion
	for _, v := range h.versions {
		if v.number > number {
			break
		}
		at = v
	}
	return at
}

// violations returns the violations of an invariant and the number of observations that it was checked with. It compares
// with versions of nodes only here, because the watch of nodes may lag behind the watch of pods.
func (m *monitor) violations(invariant scenario.Invariant) (found []string, checks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch invariant {
	case scenario.ForeignTaintsStay:
		return m.lostTaints, m.taintChecks
	case scenario.HeldBeforeBack:
		return m.unheldBoots, m.reboots
	case scenario.NoEarlyPod:
		for _, b := range m.binds {
			seen := m.nodes[b.node]
			if seen == nil {
				continue
			}
			for _, taint := range seen.at(b.number).taints {
				if !slices.ContainsFunc(b.tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, true) }) {
					found = append(found, fmt.Sprintf("pod %s was bound to %s while it had the taint %s", b.pod, b.node, taint.ToString()))
				}
			}
		}
		return found, len(m.binds)
	case scenario.NoEarlyReady:
		found = slices.Clone(m.readyTooEarly)
		for _, o := range m.openings {
			missing := slices.Clone(o.missing)
			for _, required := range m.requirements[o.gate] {
				if node := m.nodes[o.node]; required.ofNode && node != nil && node.at(o.number).statuses[required.condition] != required.status {
					missing = append(missing, required.component)
				}
			}
			for _, component := range missing {
				found = append(found, fmt.Sprintf("the gate of pod %s was opened before %s was ready", o.pod, component))
			}
		}
		return found, m.readied
	}
	return nil, 0
}

// podStates returns the current states of the pods.
func (m *monitor) podStates() []scenario.PodState {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []scenario.PodState
	for _, pod := range m.pods {
		all = append(all, pod.PodState)
	}
	return all
}

// numberOf returns the resourceVersion as a number, which it is in Kubernetes; 0 if it is not.
func numberOf(obj metav1.Object) uint64 {
	number, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return number
}
