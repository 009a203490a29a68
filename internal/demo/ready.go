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

// want is what a component of a rule says when it says yes.
type want struct {
	component string
	condition string
	status    corev1.ConditionStatus
	ofNode    bool
}

// network is what a pod says of its network.
type network struct {
	gates    []string
	statuses map[string]corev1.ConditionStatus // of conditions
	reasons  []string                          // of gates
	turned   time.Time                         // when a component last said yes
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

// waiting says that a gate is closed.
func (n *network) waiting() bool {
	return slices.ContainsFunc(n.gates, func(gate string) bool { return !n.isTrue(gate) })
}

// sawNetwork notes what a version of a pod says that the one before did not.
func (w *witness) sawNetwork(before *network, pod *corev1.Pod) network {
	now := network{statuses: map[string]corev1.ConditionStatus{}, turned: before.turned}
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
			now.turned = w.now()
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
			w.hasty = append(w.hasty, fmt.Sprintf("pod %s was Ready while its gate was closed", pod.Name))
		}
	}
	return now
}

// opened notes that a gate was opened. What components say is asked only if somebody says that all
// have said yes.
func (w *witness) opened(now *network, pod *corev1.Pod, gate string) {
	w.opens++
	if conditionOf(pod, gate).Reason != podv1alpha1.ReasonAllReady {
		return
	}
	one := opening{pod: pod.Name, node: pod.Spec.NodeName, gate: gate, number: numberOf(pod)}
	for _, asked := range w.wants[gate] {
		if !asked.ofNode && !saysYes(pod, asked) {
			one.missing = append(one.missing, asked.component)
		}
	}
	w.openings = append(w.openings, one)
	last := now.turned
	if node := w.nodes[pod.Spec.NodeName]; node != nil && node.turned.After(last) {
		last = node.turned
	}
	if !last.IsZero() {
		w.gateDelays = append(w.gateDelays, w.now().Sub(last))
	}
}

// saysYes says whether the pod has the condition, and has it for the sandbox that it has.
func saysYes(pod *corev1.Pod, asked want) bool {
	said, sandbox := conditionOf(pod, asked.condition), conditionOf(pod, string(corev1.PodReadyToStartContainers))
	return said != nil && said.Status == asked.status && sandbox != nil && sandbox.Status == corev1.ConditionTrue &&
		!said.LastTransitionTime.Before(&sandbox.LastTransitionTime)
}

// unsaid are the pods that were Ready, or whose gates were opened, before all components had said yes,
// and how often a pod with a gate became Ready. The watch of nodes may be behind that of pods for a
// moment.
func (w *witness) unsaid() (found []string, looks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found = slices.Clone(w.hasty)
	for _, o := range w.openings {
		missing := slices.Clone(o.missing)
		for _, asked := range w.wants[o.gate] {
			if node := w.nodes[o.node]; asked.ofNode && node != nil && node.says(asked.condition, o.number) != string(asked.status) {
				missing = append(missing, asked.component)
			}
		}
		for _, component := range missing {
			found = append(found, fmt.Sprintf("the gate of pod %s was opened before %s had said yes", o.pod, component))
		}
	}
	return found, w.readied
}

// word is what a condition of a node says from a version on.
type word struct {
	number uint64 // resourceVersion
	status string
}

// says is what a condition of the node said when the cluster's counter stood there.
func (h *history) says(condition string, number uint64) string {
	status := ""
	for _, said := range h.words[condition] {
		if said.number > number {
			break
		}
		status = said.status
	}
	return status
}

// podStates are the pods as they are now, with their nodes as the cluster calls them.
func (w *witness) podStates() []scenario.PodState {
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
func (w *witness) countReady() (ready, gated int) {
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
