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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// monitor watches the nodes and pods of a scenario with watches of its own, and records what is needed to
// check the invariants.
type monitor struct {
	now func() time.Time

	mu         sync.Mutex
	nodes      map[string]*history
	pods       map[string]podState
	binds      []bind
	joinTaints map[string][]corev1.Taint // what nodes joined with

	taintChecks int // comparisons of the taints with which nodes joined
	lost        []string
	reboots     int      // of nodes that were away for a reboot
	unheldBoots []string // those that no rule held when they came back
	holds       int
	releases    int
	delays      []time.Duration // from the last condition's turn to True until the node was free

	requirements  map[string][]requirement // what components say before a gate may be opened, by gate
	openings      []opening
	opens         int             // gates that were opened, for whatever reason
	readied       int             // pods with a gate that became Ready
	readyTooEarly []string        // those that were Ready before their gate was open
	gateDelays    []time.Duration // from the last component ready until the gate was open
}

// history is what happened to one node.
type history struct {
	versions []version
	held     bool
	lastTrue time.Time           // when a condition last became True
	statuses map[string]string   // of conditions
	changes  map[string][]change // of conditions that are not the kubelet's
	boot     string              // bootID
}

// version is a state of a node that differs from the one before in what rules put there.
type version struct {
	number uint64 // resourceVersion: one counter for all objects of a cluster
	taints []corev1.Taint
}

type podState struct {
	node    string
	running bool
	network network
}

// bind is the moment in which a pod was bound.
type bind struct {
	pod, node   string
	number      uint64
	tolerations []corev1.Toleration
}

func newMonitor(now func() time.Time) *monitor {
	return &monitor{now: now, nodes: map[string]*history{}, pods: map[string]podState{}, joinTaints: map[string][]corev1.Taint{}}
}

// follow watches until the context is over. It returns when everything has been seen once.
func (w *monitor) follow(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes := informers.NewSharedInformerFactory(client, 0)
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(Namespace))
	_, errNodes := nodes.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.observeNode(obj.(*corev1.Node)) },
		UpdateFunc: func(_, obj any) { w.observeNode(obj.(*corev1.Node)) },
	})
	_, errPods := pods.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.observePod(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { w.observePod(obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) { w.forgetPod(obj) },
	})
	if err := errors.Join(errNodes, errPods); err != nil {
		return err
	}
	for _, factory := range []informers.SharedInformerFactory{nodes, pods} {
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
	}
	return ctx.Err()
}

// joins notes what a node is about to join with.
func (w *monitor) joins(node string, taints []corev1.Taint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joinTaints[node] = taints
}

func (w *monitor) observeNode(node *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, brought := range w.joinTaints[node.Name] {
		w.taintChecks++
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == brought.Key && t.Value == brought.Value && t.Effect == brought.Effect
		}) {
			w.lost = append(w.lost, fmt.Sprintf("node %s lost the taint %s", node.Name, brought.ToString()))
		}
	}
	seen := w.nodes[node.Name]
	if seen == nil {
		seen = &history{statuses: map[string]string{}, changes: map[string][]change{}}
		w.nodes[node.Name] = seen
	}
	taints := ofRules(node)
	w.observeBoot(seen, node, len(taints) > 0)
	w.observeConditions(seen, node)
	if n := len(seen.versions); n == 0 || !slices.Equal(seen.versions[n-1].taints, taints) {
		seen.versions = append(seen.versions, version{number: numberOf(node), taints: taints})
	}
	switch held := len(taints) > 0; {
	case held && !seen.held:
		w.holds++
	case !held && seen.held:
		w.releases++
		if !seen.lastTrue.IsZero() {
			w.delays = append(w.delays, w.now().Sub(seen.lastTrue))
		}
	}
	seen.held = len(taints) > 0
}

// observeBoot records whether a node that was not Ready and is in another boot now was held before that.
func (w *monitor) observeBoot(seen *history, node *corev1.Node, held bool) {
	before, boot := seen.boot, node.Status.NodeInfo.BootID
	seen.boot = boot
	if before == "" || before == boot || seen.statuses[string(corev1.NodeReady)] == string(corev1.ConditionTrue) {
		return
	}
	w.reboots++
	if !held {
		w.unheldBoots = append(w.unheldBoots, fmt.Sprintf("node %s came back from a reboot without the taint of a rule", node.Name))
	}
}

// observeConditions records the changes of conditions that are not the kubelet's.
func (w *monitor) observeConditions(seen *history, node *corev1.Node) {
	for _, c := range node.Status.Conditions {
		before := seen.statuses[string(c.Type)]
		seen.statuses[string(c.Type)] = string(c.Status)
		if strings.Contains(string(c.Type), "/") && before != string(c.Status) {
			seen.changes[string(c.Type)] = append(seen.changes[string(c.Type)], change{number: numberOf(node), status: string(c.Status)})
		}
		if strings.Contains(string(c.Type), "/") && c.Status == corev1.ConditionTrue && before != string(corev1.ConditionTrue) {
			seen.lastTrue = w.now()
		}
	}
}

// ofRules are the taints of a node that only rules may manage, and that keep pods away.
func ofRules(node *corev1.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && ofRule(taint.Key) {
			taints = append(taints, taint)
		}
	}
	return taints
}

// ofRule reports whether a taint of this key is one that only rules may manage.
func ofRule(key string) bool {
	return slices.ContainsFunc(v1alpha1.TaintPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (w *monitor) observePod(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pods[pod.Name]
	if before.node == "" && pod.Spec.NodeName != "" {
		w.binds = append(w.binds, bind{pod: pod.Name, node: pod.Spec.NodeName, number: numberOf(pod), tolerations: pod.Spec.Tolerations})
	}
	w.pods[pod.Name] = podState{node: pod.Spec.NodeName, running: pod.Status.Phase == corev1.PodRunning, network: w.observeGates(&before.network, pod)}
}

func (w *monitor) forgetPod(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		delete(w.pods, strings.TrimPrefix(key, Namespace+"/"))
	}
}

// earlyPods are the pods that were bound while a rule held their node. The watch of nodes may be
// behind that of pods for a moment.
func (w *monitor) earlyPods() (found []string, checks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.binds {
		seen := w.nodes[b.node]
		if seen == nil {
			continue
		}
		for _, taint := range seen.at(b.number) {
			if !tolerates(b.tolerations, taint) {
				found = append(found, fmt.Sprintf("pod %s was bound to %s while it had the taint %s", b.pod, b.node, taint.ToString()))
			}
		}
	}
	return found, len(w.binds)
}

// at are the taints that the node had when the cluster's counter stood there.
func (h *history) at(number uint64) []corev1.Taint {
	var taints []corev1.Taint
	for _, v := range h.versions {
		if v.number > number {
			break
		}
		taints = v.taints
	}
	return taints
}

func tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value) || t.Key == "" && t.Operator == corev1.TolerationOpExists)
	})
}

// count is how many pods run and wait, and how many each node has.
func (w *monitor) count() (running, waiting int, on map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	on = map[string]int{}
	for _, pod := range w.pods {
		if pod.running {
			running++
		}
		if pod.node == "" {
			waiting++
		} else {
			on[pod.node]++
		}
	}
	return running, waiting, on
}

// knows reports whether the monitor has seen the node.
func (w *monitor) knows(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[node] != nil
}

// numberOf is 0 where the API server's versions are no numbers; those of Kubernetes are.
func numberOf(obj metav1.Object) uint64 {
	number, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return number
}
