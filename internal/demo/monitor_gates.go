package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// requirement is the condition that a component of a rule must have.
type requirement struct {
	component string
	condition string
	status    corev1.ConditionStatus
	ofNode    bool
}

// network is the state of the gates and conditions of a pod.
type network struct {
	gates    []string
	statuses map[string]corev1.ConditionStatus // of conditions
	reasons  []string                          // of gates
	lastTrue time.Time                         // when a component last said yes
}

// opening is a gate that was opened because all components had said yes.
type opening struct {
	pod, node, gate string
	number          uint64
	// missing are conditions of the pod that did not say yes then.
	missing []string
}

func (n *network) isTrue(condition string) bool {
	return n.statuses[condition] == corev1.ConditionTrue
}

func (n *network) ready() bool { return n.isTrue(string(corev1.PodReady)) }

// waiting reports whether a gate is closed.
func (n *network) waiting() bool {
	return slices.ContainsFunc(n.gates, func(gate string) bool { return !n.isTrue(gate) })
}

// observeGates records what changed between two versions of a pod.
func (w *monitor) observeGates(before *network, pod *corev1.Pod) network {
	now := network{statuses: map[string]corev1.ConditionStatus{}, lastTrue: before.lastTrue}
	for _, gate := range pod.Spec.ReadinessGates {
		now.gates = append(now.gates, string(gate.ConditionType))
	}
	for _, c := range pod.Status.Conditions {
		kind := string(c.Type)
		now.statuses[kind] = c.Status
		switch {
		case slices.Contains(now.gates, kind):
			now.reasons = append(now.reasons, c.Reason)
		case strings.Contains(kind, "/") && now.isTrue(kind) && !before.isTrue(kind):
			now.lastTrue = w.now()
		}
	}
	for _, gate := range now.gates {
		if now.isTrue(gate) && !before.isTrue(gate) {
			w.opened(&now, pod, gate)
		}
	}
	if len(now.gates) > 0 && now.ready() && !before.ready() {
		w.readied++
		if now.waiting() {
			w.readyTooEarly = append(w.readyTooEarly, fmt.Sprintf("pod %s was Ready while its gate was closed", pod.Name))
		}
	}
	return now
}

// opened records that a gate was opened. Conditions are required only if the reason is that all components are ready.
func (w *monitor) opened(now *network, pod *corev1.Pod, gate string) {
	w.opens++
	if conditionOf(pod, gate).Reason != podv1alpha1.ReasonAllReady {
		return
	}
	one := opening{pod: pod.Name, node: pod.Spec.NodeName, gate: gate, number: numberOf(pod)}
	for _, required := range w.requirements[gate] {
		if !required.ofNode && !isMet(pod, required) {
			one.missing = append(one.missing, required.component)
		}
	}
	w.openings = append(w.openings, one)
	last := now.lastTrue
	if node := w.nodes[pod.Spec.NodeName]; node != nil && node.lastTrue.After(last) {
		last = node.lastTrue
	}
	if !last.IsZero() {
		w.gateDelays = append(w.gateDelays, w.now().Sub(last))
	}
}

// isMet reports whether the pod has the condition for its current sandbox.
func isMet(pod *corev1.Pod, required requirement) bool {
	said, sandbox := conditionOf(pod, required.condition), conditionOf(pod, string(corev1.PodReadyToStartContainers))
	return said != nil && said.Status == required.status && sandbox != nil && sandbox.Status == corev1.ConditionTrue &&
		!said.LastTransitionTime.Before(&sandbox.LastTransitionTime)
}

// earlyReady are the pods that were Ready, or whose gates were opened, before all components had said yes,
// and how often a pod with a gate became Ready. The watch of nodes may be behind that of pods for a
// moment.
func (w *monitor) earlyReady() (found []string, checks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found = slices.Clone(w.readyTooEarly)
	for _, o := range w.openings {
		missing := slices.Clone(o.missing)
		for _, required := range w.requirements[o.gate] {
			if node := w.nodes[o.node]; required.ofNode && node != nil && node.statusAt(required.condition, o.number) != string(required.status) {
				missing = append(missing, required.component)
			}
		}
		for _, component := range missing {
			found = append(found, fmt.Sprintf("the gate of pod %s was opened before %s had said yes", o.pod, component))
		}
	}
	return found, w.readied
}

// change is a change of the status of a node condition.
type change struct {
	number uint64 // resourceVersion
	status string
}

// statusAt is the status of a condition of the node when the cluster's counter stood there.
func (h *history) statusAt(condition string, number uint64) string {
	status := ""
	for _, said := range h.changes[condition] {
		if said.number > number {
			break
		}
		status = said.status
	}
	return status
}

// podStates are the pods as they are now, with their nodes as the cluster calls them.
func (w *monitor) podStates() []scenario.PodState {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []scenario.PodState
	for _, pod := range w.pods {
		all = append(all, scenario.PodState{
			Node: pod.node, Gated: len(pod.network.gates) > 0, Waiting: pod.network.waiting(), Ready: pod.network.ready(), Reasons: pod.network.reasons,
		})
	}
	return all
}

// countReady is how many pods are Ready, and how many have a gate.
func (w *monitor) countReady() (ready, gated int) {
	for _, pod := range w.podStates() {
		if pod.Ready {
			ready++
		}
		if pod.Gated {
			gated++
		}
	}
	return ready, gated
}
