package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Rules of this scenario: pods of web are gated, pods of held also have a start hold, and pods of impatient
// have a deadline of 45 seconds.
const (
	reachedAndProgrammed = `  components:
  - {name: datapath, reach: {}}
  - {name: policy, podCondition: {type: ` + programmed + `}}
`
	heldBesides = "  startHold: true\n" + reachedAndProgrammed
	notForLong  = "  startHold: true\n  deadlineSeconds: 45\n  onDeadline: Open\n" + reachedAndProgrammed
)

// Scenario 16: a gate is correct after faults of pods, nodes, agents and rules, and after an uninstall: it is
// closed for a new sandbox until its components report again, does not change without an agent, and never
// stays closed.
func TestGatesAreCorrectAfterFaults(t *testing.T) {
	l := lab.Start(t)
	for _, name := range []string{"n1", "n2"} {
		l.Join(t, name)
	}
	l.InstallFlannel(t)
	installPods(t, l)
	l.EventuallyNodes(t, "ready", is(string(corev1.NodeReady), corev1.ConditionTrue), "n1", "n2")
	attended(t, l)
	applyFaultRules(t, l)
	workload(t, l, "web", 1, on("n1"), anywhere)
	workload(t, l, "held", 1, on("n1"), anywhere)
	web, held := opened(t, l, only(t, l, "web")), opened(t, l, only(t, l, "held"))
	l.Step(t, "two pods are open, one of them was held")

	web, held = newSandboxes(t, l, web, held)
	web, held = reboot(t, l, web, held)
	web = agentsAway(t, l, web, held)
	rulesDeleted(t, l, web, held)
	uninstalled(t, l)
}

func applyFaultRules(t *testing.T, l *lab.Lab) {
	t.Helper()
	for name, fields := range map[string]string{"web": reachedAndProgrammed, "held": heldBesides, "impatient": notForLong} {
		l.Apply(t, podRule(name, fields, name))
	}
	for _, name := range []string{"web", "held", "impatient"} {
		eventuallyPodRule(t, l, name, "enforced", enforces(metav1.ConditionTrue, podv1alpha1.ReasonEnforced))
	}
}

// only waits for the only pod of an app.
func only(t *testing.T, l *lab.Lab, app string) *corev1.Pod {
	t.Helper()
	return newest(t, l, app, 1)
}

// newest waits for this number of pods of an app and returns the youngest.
func newest(t *testing.T, l *lab.Lab, app string, pods int) *corev1.Pod {
	t.Helper()
	var found corev1.Pod
	testenv.Eventually(t, fmt.Sprintf("%d pods of %s", pods, app), func(context.Context) error {
		list := podsOf(t, l, metav1.NamespaceDefault, app)
		if len(list) != pods {
			return fmt.Errorf("there are %d", len(list))
		}
		found = slices.MaxFunc(list, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		return nil
	})
	return &found
}

// opened has the policy engine program a pod, waits until it is Ready, and returns it. Then it backdates the
// engine's condition, so that it is older than any later sandbox: an open gate does not depend on that.
func opened(t *testing.T, l *lab.Lab, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	program(t, l, pod, time.Now())
	open := eventuallyPod(t, l, pod.Name, "open", isOpen(podv1alpha1.ReasonAllReady))
	if len(open.Spec.InitContainers) > 0 && !startedWhenProgrammed(open) {
		t.Errorf("%s was held, and started before it was programmed: %+v", pod.Name, open.Status)
	}
	ago := time.Now().Add(-time.Minute)
	program(t, l, pod, ago)
	return eventuallyPod(t, l, pod.Name, "open", func(pod *corev1.Pod) bool {
		return isOpen(podv1alpha1.ReasonAllReady)(pod) && conditionOf(pod, programmed).LastTransitionTime.Unix() == ago.Unix()
	})
}

// newSandboxes kills the sandboxes of pods.
func newSandboxes(t *testing.T, l *lab.Lab, web, held *corev1.Pod) (*corev1.Pod, *corev1.Pod) {
	t.Helper()
	history := watchPods(t, l, "web", "held")
	killSandbox(t, l, web)
	killSandbox(t, l, held)
	closedAgain(t, l, web)
	closedAgain(t, l, held)
	l.Step(t, "sandboxes were killed: the gates of the new ones are closed")
	after, afterHeld := opened(t, l, web), opened(t, l, held)
	closedUntilProgrammed(t, history, web)
	closedUntilProgrammed(t, history, held)
	l.Step(t, "and open again after the policy engine reported again")
	return after, afterHeld
}

// killSandbox kills the pause process of a pod's sandbox.
func killSandbox(t *testing.T, l *lab.Lab, pod *corev1.Pod) {
	t.Helper()
	found := pids(l.Node(pod.Spec.NodeName), pod.UID, "/pause")
	if len(found) != 1 {
		t.Fatalf("the sandbox of %s has %d processes, must have one", pod.Name, len(found))
	}
	if err := syscall.Kill(found[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// closedAgain waits until the gate of a pod is closed because the same pod has a new sandbox.
func closedAgain(t *testing.T, l *lab.Lab, before *corev1.Pod) {
	t.Helper()
	eventuallyPod(t, l, before.Name, "closed for its new sandbox", func(pod *corev1.Pod) bool {
		is := gateOf(pod)
		return pod.UID == before.UID && sandboxOf(pod).After(sandboxOf(before)) &&
			is.Status == corev1.ConditionFalse && strings.Contains(is.Message, "policy") && strings.Contains(is.Message, "older than the pod's sandbox")
	})
}

// closedUntilProgrammed fails the test if the gate opened again before the policy engine reported again.
func closedUntilProgrammed(t *testing.T, history *podHistory, before *corev1.Pod) {
	t.Helper()
	said := conditionOf(before, programmed).LastTransitionTime.Time
	closed, stale := false, 0
	for _, pod := range history.of(before.UID) {
		reported := conditionOf(pod, programmed).LastTransitionTime.After(said)
		switch gateOf(pod).Status {
		case corev1.ConditionFalse:
			closed = true
		case corev1.ConditionTrue:
			if closed && !reported {
				t.Errorf("the gate of %s was opened again before it was programmed again: %+v", pod.Name, pod.Status.Conditions)
				return
			}
			if !reported && sandboxOf(pod).After(sandboxOf(before)) {
				stale++
			}
		}
	}
	t.Logf("%s: in %d states a gate of the old sandbox was open in the new one", before.Name, stale)
}

// reboot: after a reboot the same pods have new sandboxes.
func reboot(t *testing.T, l *lab.Lab, web, held *corev1.Pod) (*corev1.Pod, *corev1.Pod) {
	t.Helper()
	history := watchPods(t, l, "web", "held")
	l.Node("n1").Reboot(t)
	closedAgain(t, l, web)
	closedAgain(t, l, held)
	l.Step(t, "n1 was rebooted: the gates of its pods are closed")
	after, afterHeld := opened(t, l, web), opened(t, l, held)
	closedUntilProgrammed(t, history, web)
	closedUntilProgrammed(t, history, held)
	l.Step(t, "and open again")
	return after, afterHeld
}

// agentsAway removes all agents until they count as gone, which takes a minute. Meanwhile a pod gets a new
// sandbox, and pods are created. The manager opens the pods with a deadline, whether an agent closed their gate
// or never saw them; the pod without a deadline waits.
func agentsAway(t *testing.T, l *lab.Lab, web, held *corev1.Pod) *corev1.Pod {
	t.Helper()
	history := watchPods(t, l, "web", "held")
	workload(t, l, "impatient", 1, on("n1"), anywhere)
	impatient := []*corev1.Pod{wait(t, l, "impatient", 1)} // an agent has set its gate to False
	selectAgents(t, l, `"nowhere"`)
	testenv.Eventually(t, "the agents to be gone", func(ctx context.Context) error {
		var list corev1.PodList
		if err := l.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "podgate"}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		return nil
	})
	l.Step(t, "there are no agents anymore")
	killSandbox(t, l, web)
	l.Kubectl.Run(t, "scale", "deployment/web", "--replicas=2")
	waiting := newest(t, l, "web", 2)
	program(t, l, waiting, time.Now())
	l.Kubectl.Run(t, "scale", "deployment/impatient", "--replicas=2")
	impatient = append(impatient, newest(t, l, "impatient", 2)) // no agent has seen it

	eventuallyPodRule(t, l, "web", "without agents", func(rule *podv1alpha1.PodReadinessRule) bool {
		return enforces(metav1.ConditionFalse, podv1alpha1.ReasonNoAgent)(rule) && slices.Contains(rule.Status.NodesWithoutAgent, "n1")
	})
	for _, pod := range impatient {
		eventuallyPod(t, l, pod.Name, "opened by the manager", isOpen(podv1alpha1.ReasonAgentGone))
		testenv.Eventually(t, "the event "+podv1alpha1.EventOpened, func(context.Context) error {
			for _, event := range l.Events(t, pod) {
				if event.Reason == podv1alpha1.EventOpened {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
	if now := eventuallyPod(t, l, waiting.Name, "there", func(*corev1.Pod) bool { return true }); gateOf(now).Status == corev1.ConditionTrue {
		t.Errorf("the gate of %s must stay closed without an agent: %+v", waiting.Name, gateOf(now))
	}
	l.Step(t, "agents count as gone: pods with a deadline are open, the other one has an event")

	selectAgents(t, l, "null")
	attended(t, l)
	eventuallyPod(t, l, waiting.Name, "open", isOpen(podv1alpha1.ReasonAllReady))
	closedAgain(t, l, web)
	after := opened(t, l, web)
	eventuallyPodRule(t, l, "web", "enforced", enforces(metav1.ConditionTrue, podv1alpha1.ReasonEnforced))
	history.stayedOpen(t, held)
	for _, pod := range impatient {
		if is := gateOf(eventuallyPod(t, l, pod.Name, "ready", isReady)); is.Reason != podv1alpha1.ReasonAgentGone {
			t.Errorf("the gate of %s that the manager opened was touched again: %+v", pod.Name, is)
		}
	}
	l.Step(t, "agents are back: the waiting pod is open, the pod with a new sandbox is closed, and the other gates have not changed")
	return after
}

// selectAgents changes which nodes have an agent; null restores the node selector of the chart.
func selectAgents(t *testing.T, l *lab.Lab, value string) {
	t.Helper()
	l.Kubectl.Run(t, "patch", agents, "-n", namespace, "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"example.com/agents":`+value+`}}}}}`)
}

// wait adds a pod to an app whose components do not report, and waits until its gate is closed.
func wait(t *testing.T, l *lab.Lab, app string, pods int) *corev1.Pod {
	t.Helper()
	l.Kubectl.Run(t, "scale", "deployment/"+app, "--replicas="+strconv.Itoa(pods))
	return eventuallyPod(t, l, newest(t, l, app, pods).Name, "waiting", func(pod *corev1.Pod) bool {
		return gateOf(pod).Status == corev1.ConditionFalse && strings.Contains(gateOf(pod).Message, "policy")
	})
}

// rulesDeleted: the gates and latches of waiting pods open before the rules are gone.
func rulesDeleted(t *testing.T, l *lab.Lab, web, held *corev1.Pod) {
	t.Helper()
	waiting := []*corev1.Pod{wait(t, l, "web", 3), wait(t, l, "held", 2)}
	history := watchPods(t, l, "web", "held")
	l.Kubectl.Run(t, "delete", "prr", "web", "held", "impatient", "--timeout=2m")
	for _, pod := range waiting {
		eventuallyPod(t, l, pod.Name, "opened", isOpen(podv1alpha1.ReasonRuleDeleted))
	}
	history.stayedOpen(t, web, held)
	l.Step(t, "rules were deleted: waiting pods are open")
}

// uninstalled removes Readygate while rules exist and pods wait.
func uninstalled(t *testing.T, l *lab.Lab) {
	t.Helper()
	applyFaultRules(t, l)
	waiting := []*corev1.Pod{wait(t, l, "web", 4), wait(t, l, "held", 3)}
	l.Helm(t, "uninstall", release, "--namespace", namespace)
	l.Step(t, "uninstalled; rules are kept")
	for _, pod := range waiting {
		eventuallyPod(t, l, pod.Name, "opened", isOpen(podv1alpha1.ReasonRuleDeleted))
	}
	working(t, l, "web", 4)
	working(t, l, "held", 3)
	nothingIsLeft(t, l, "customresourcedefinition.apiextensions.k8s.io/"+v1alpha1.CRDName, "customresourcedefinition.apiextensions.k8s.io/"+podv1alpha1.CRDName)
	var rules podv1alpha1.PodReadinessRuleList
	if err := l.Client.List(t.Context(), &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Items) != 3 {
		t.Errorf("%d rules are left, must be 3: they are the user's", len(rules.Items))
	}
	for _, rule := range rules.Items {
		if len(rule.Finalizers) > 0 {
			t.Errorf("rule %s has finalizers %v", rule.Name, rule.Finalizers)
		}
	}
	l.Create(t, idle("afterwards", "held", onNode("n1")))
	if pod := eventuallyPod(t, l, "afterwards", "ready", isReady); touched(pod) {
		t.Errorf("a pod that was created afterwards was changed: %+v", pod.Spec)
	}
	l.Step(t, "no pod waits, nothing is left, and new pods are unchanged")
}
