package demo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// joins records the initial taints of a node before it is created.
func (m *monitor) joins(node string, taints []corev1.Taint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joinTaints[node] = taints
}

// observeNode records the changes between two versions of a node.
func (m *monitor) observeNode(node *corev1.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checkJoinTaints(node)
	seen := m.historyOf(node.Name)
	now := nodeVersion{number: numberOf(node), taints: ofRules(node), statuses: map[string]corev1.ConditionStatus{}, boot: node.Status.NodeInfo.BootID}
	before := seen.at(now.number)
	for _, c := range node.Status.Conditions {
		kind := string(c.Type)
		now.statuses[kind] = c.Status
		if strings.Contains(kind, "/") && c.Status == corev1.ConditionTrue && before.statuses[kind] != corev1.ConditionTrue {
			seen.lastTrue = m.now()
		}
	}
	held := len(now.taints) > 0
	switch wasHeld := len(before.taints) > 0; {
	case held && !wasHeld:
		m.holds++
	case !held && wasHeld:
		m.releases++
		if !seen.lastTrue.IsZero() {
			m.delays = append(m.delays, m.now().Sub(seen.lastTrue))
		}
	}
	rebooted := before.boot != "" && before.boot != now.boot
	if rebooted && before.statuses[string(corev1.NodeReady)] != corev1.ConditionTrue {
		m.reboots++
		if !held {
			m.unheldBoots = append(m.unheldBoots, fmt.Sprintf("node %s was Ready after a reboot without the taint of a rule", node.Name))
		}
	}
	if before.number = now.number; !reflect.DeepEqual(before, now) {
		seen.versions = append(seen.versions, now)
	}
}

func (m *monitor) historyOf(node string) *history {
	seen := m.nodes[node]
	if seen == nil {
		seen = &history{}
		m.nodes[node] = seen
	}
	return seen
}

// checkJoinTaints records initial taints that the node has lost.
func (m *monitor) checkJoinTaints(node *corev1.Node) {
	for _, joined := range m.joinTaints[node.Name] {
		m.taintChecks++
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.ToString() == joined.ToString() }) {
			m.lostTaints = append(m.lostTaints, fmt.Sprintf("node %s lost the taint %s", node.Name, joined.ToString()))
		}
	}
}

// observePod records the changes between two versions of a pod.
func (m *monitor) observePod(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.pods[pod.Name]
	if before.Node == "" && pod.Spec.NodeName != "" {
		m.binds = append(m.binds, bind{pod: pod.Name, node: pod.Spec.NodeName, number: numberOf(pod), tolerations: pod.Spec.Tolerations})
	}
	now := podVersion{
		PodState: scenario.PodState{Node: pod.Spec.NodeName, Running: pod.Status.Phase == corev1.PodRunning, Gated: len(pod.Spec.ReadinessGates) > 0},
		statuses: map[string]corev1.ConditionStatus{}, lastTrue: before.lastTrue,
	}
	becameTrue := func(condition string) bool {
		return now.statuses[condition] == corev1.ConditionTrue && before.statuses[condition] != corev1.ConditionTrue
	}
	for _, c := range pod.Status.Conditions {
		kind := string(c.Type)
		now.statuses[kind] = c.Status
		switch {
		case slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: c.Type}):
			now.Reasons = append(now.Reasons, c.Reason)
		case strings.Contains(kind, "/") && becameTrue(kind):
			now.lastTrue = m.now()
		}
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if now.statuses[string(gate.ConditionType)] != corev1.ConditionTrue {
			now.Waiting = true
		} else if becameTrue(string(gate.ConditionType)) {
			m.opened(now.lastTrue, pod, string(gate.ConditionType))
		}
	}
	now.Ready = now.statuses[string(corev1.PodReady)] == corev1.ConditionTrue
	if now.Gated && now.Ready && !before.Ready {
		m.readied++
		if now.Waiting {
			m.readyTooEarly = append(m.readyTooEarly, fmt.Sprintf("pod %s was Ready while its gate was closed", pod.Name))
		}
	}
	m.pods[pod.Name] = now
}

// opened records an opened gate. Conditions are required only for the reason AllComponentsReady.
func (m *monitor) opened(lastTrue time.Time, pod *corev1.Pod, gate string) {
	m.opens++
	if conditionOf(pod, gate).Reason != podv1alpha1.ReasonAllReady {
		return
	}
	one := opening{pod: pod.Name, node: pod.Spec.NodeName, gate: gate, number: numberOf(pod)}
	for _, required := range m.requirements[gate] {
		if !required.ofNode && !isMet(pod, required) {
			one.missing = append(one.missing, required.component)
		}
	}
	m.openings = append(m.openings, one)
	if node := m.nodes[pod.Spec.NodeName]; node != nil && node.lastTrue.After(lastTrue) {
		lastTrue = node.lastTrue
	}
	if !lastTrue.IsZero() {
		m.gateDelays = append(m.gateDelays, m.now().Sub(lastTrue))
	}
}

// isMet reports whether the pod has the condition for its current sandbox.
func isMet(pod *corev1.Pod, required requirement) bool {
	is, sandbox := conditionOf(pod, required.condition), conditionOf(pod, string(corev1.PodReadyToStartContainers))
	return is != nil && is.Status == required.status && sandbox != nil && sandbox.Status == corev1.ConditionTrue &&
		!is.LastTransitionTime.Before(&sandbox.LastTransitionTime)
}

func (m *monitor) forgetPod(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, name)
}
