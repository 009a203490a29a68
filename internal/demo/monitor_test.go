package demo_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/demo"
)

var (
	hold    = corev1.Taint{Key: "readiness.k8s.io/NetworkReady", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	foreign = corev1.Taint{Key: "example.com/team", Value: "blue", Effect: corev1.TaintEffectPreferNoSchedule}
)

func node(version string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version}, Spec: corev1.NodeSpec{Taints: taints}}
}

func pod(version, on string, tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: version}, Spec: corev1.PodSpec{NodeName: on, Tolerations: tolerations}}
}

// heldUntil20 returns a monitor that observed a node held at version 10 and released at version 20.
func heldUntil20() demo.Monitor {
	w := demo.NewMonitor(time.Now)
	w.ObserveNode(node("10", foreign, hold))
	w.ObserveNode(node("15", hold, foreign))
	w.ObserveNode(node("20", foreign))
	return w
}

func TestAPodThatIsBoundToAHeldNodeIsEarly(t *testing.T) {
	for version, early := range map[string]bool{"10": true, "19": true, "20": false, "21": false} {
		w := heldUntil20()
		w.ObservePod(pod("5", ""))
		w.ObservePod(pod(version, "n"))
		w.ObservePod(pod("99", "n")) // what happens to it later is no binding
		if found, checks := w.EarlyPods(); (len(found) == 1) != early || checks != 1 {
			t.Errorf("bound at %s: %v, %d observations", version, found, checks)
		}
	}
}

func TestAPodMayBeBoundBeforeTheMonitorSeesTheRelease(t *testing.T) {
	w := demo.NewMonitor(time.Now)
	w.ObserveNode(node("10", hold))
	w.ObservePod(pod("21", "n"))
	w.ObserveNode(node("20"))
	if found, _ := w.EarlyPods(); len(found) > 0 {
		t.Errorf("%v, although the resourceVersion says that the node was released", found)
	}
}

func TestAPodThatToleratesTheTaintIsNotEarly(t *testing.T) {
	for _, toleration := range []corev1.Toleration{
		{Operator: corev1.TolerationOpExists},
		{Key: hold.Key, Operator: corev1.TolerationOpExists},
		{Key: hold.Key, Value: hold.Value, Effect: hold.Effect},
	} {
		w := heldUntil20()
		w.ObservePod(pod("12", "n", toleration))
		if found, _ := w.EarlyPods(); len(found) > 0 {
			t.Errorf("%+v: %v", toleration, found)
		}
	}
	w := heldUntil20()
	w.ObservePod(pod("12", "n", corev1.Toleration{Key: "example.com/other", Operator: corev1.TolerationOpExists}))
	if found, _ := w.EarlyPods(); len(found) != 1 {
		t.Error("a toleration of another taint counted for the rule's taint")
	}
}

func TestLostForeignTaintIsReported(t *testing.T) {
	w := demo.NewMonitor(time.Now)
	w.Joins("n", foreign)
	w.ObserveNode(node("1", hold, foreign))
	w.ObserveNode(node("2", foreign))
	if lost, checks := w.LostTaints(); len(lost) > 0 || checks != 2 {
		t.Errorf("%v, %d observations", lost, checks)
	}
	changed := foreign
	changed.Value = "red"
	w.ObserveNode(node("3", changed))
	w.ObserveNode(node("4"))
	if lost, _ := w.LostTaints(); len(lost) != 2 || !strings.Contains(lost[0], "example.com/team=blue") {
		t.Errorf("%v", lost)
	}
}

func TestHoldsReleasesAndDelaysAreCounted(t *testing.T) {
	clock := time.Unix(1000, 0)
	w := demo.NewMonitor(func() time.Time { return clock })
	says := func(version string, status corev1.ConditionStatus, taints ...corev1.Taint) {
		n := node(version, taints...)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: "example.com/NetworkReady", Status: status}}
		w.ObserveNode(n)
	}
	says("1", corev1.ConditionFalse, hold)
	clock = clock.Add(time.Minute)
	says("2", corev1.ConditionTrue, hold)
	clock = clock.Add(40 * time.Millisecond)
	says("3", corev1.ConditionTrue)
	if got := w.Numbers(); !strings.HasPrefix(got, "1 nodes, 1 holds, 1 releases, 0 pods bound") || !strings.Contains(got, "median 40ms, maximum 40ms") {
		t.Error(got)
	}
}

// booted is a node in a boot, with a status of Ready.
func booted(version, boot string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	n := node(version, taints...)
	n.Status.NodeInfo.BootID = boot
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

func TestRebootedNodeMustBeHeldBeforeItIsReady(t *testing.T) {
	for name, test := range map[string]struct {
		versions      []*corev1.Node
		checks, early int
	}{
		"held while it was away":    {[]*corev1.Node{booted("2", "a", corev1.ConditionUnknown), booted("3", "a", corev1.ConditionUnknown, hold), booted("4", "b", corev1.ConditionTrue, hold)}, 1, 0},
		"held as it was back":       {[]*corev1.Node{booted("2", "a", corev1.ConditionUnknown), booted("3", "b", corev1.ConditionTrue), booted("4", "b", corev1.ConditionTrue, hold)}, 1, 1},
		"too quick to be noticed":   {[]*corev1.Node{booted("2", "b", corev1.ConditionTrue), booted("3", "b", corev1.ConditionTrue, hold)}, 0, 0},
		"back in the same boot":     {[]*corev1.Node{booted("2", "a", corev1.ConditionUnknown), booted("3", "a", corev1.ConditionTrue)}, 0, 0},
		"held with a foreign taint": {[]*corev1.Node{booted("2", "a", corev1.ConditionFalse, foreign), booted("3", "b", corev1.ConditionTrue, foreign)}, 1, 1},
		"away twice, and held but once": {[]*corev1.Node{
			booted("2", "a", corev1.ConditionUnknown, hold), booted("3", "b", corev1.ConditionTrue, hold),
			booted("4", "b", corev1.ConditionUnknown), booted("5", "c", corev1.ConditionTrue),
		}, 2, 1},
	} {
		w := demo.NewMonitor(time.Now)
		w.ObserveNode(booted("1", "a", corev1.ConditionTrue))
		for _, version := range test.versions {
			w.ObserveNode(version)
		}
		if early, checks := w.UnheldBoots(); len(early) != test.early || checks != test.checks {
			t.Errorf("%s: %v, %d observations; want %d, %d observations", name, early, checks, test.early, test.checks)
		}
	}
}

func TestRunningAndWaitingPodsAreCounted(t *testing.T) {
	w := heldUntil20()
	w.ObservePod(pod("5", ""))
	if running, waiting, _ := w.Count(); running != 0 || waiting != 1 {
		t.Errorf("%d run, %d wait", running, waiting)
	}
	bound := pod("30", "n")
	bound.Status.Phase = corev1.PodRunning
	w.ObservePod(bound)
	if running, waiting, on := w.Count(); running != 1 || waiting != 0 || on["n"] != 1 {
		t.Errorf("%d run, %d wait, on nodes %v", running, waiting, on)
	}
}

func TestAnInvariantWithoutObservationsFails(t *testing.T) {
	if demo.InvariantFails(0) == nil {
		t.Error("it held without an observation")
	}
	if err := demo.InvariantFails(3); err != nil {
		t.Error(err)
	}
	if err := demo.InvariantFails(3, "pod p"); err == nil || !strings.Contains(err.Error(), "pod p") {
		t.Errorf("%v", err)
	}
}
