package demo_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/scenario"
)

const (
	programmed = "policy.example.com/programmed"
	flannel    = "network.example.com/FlannelReady"
)

// says returns a condition of a pod with a time in seconds after noon.
func says(kind string, status corev1.ConditionStatus, reason string, second int) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodConditionType(kind), Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(second) * time.Second))}
}

// gated is a version of a pod with the well-known gate, which has had a sandbox since noon.
func gated(version string, conditions ...corev1.PodCondition) *corev1.Pod {
	p := pod(version, "n")
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}}
	p.Status.Conditions = append([]corev1.PodCondition{says("PodReadyToStartContainers", corev1.ConditionTrue, "", 0)}, conditions...)
	return p
}

func ready(second int) corev1.PodCondition { return says("Ready", corev1.ConditionTrue, "", second) }

func open(reason string) corev1.PodCondition {
	return says(podv1alpha1.DefaultGate, corev1.ConditionTrue, reason, 2)
}

// reported is a version of the node with flannel's condition.
func reported(version string, status corev1.ConditionStatus) *corev1.Node {
	n := node(version)
	n.Status.Conditions = []corev1.NodeCondition{{Type: flannel, Status: status}}
	return n
}

// monitorOfPods returns a monitor with the requirements of the scenario's rule.
func monitorOfPods(t *testing.T) demo.Monitor {
	t.Helper()
	w, err := demo.MonitorOf(time.Now, root, "pod-network")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAPodIsEarlyIfItIsReadyBeforeEveryComponent(t *testing.T) {
	yes := says(programmed, corev1.ConditionTrue, "", 1)
	for name, test := range map[string]struct {
		nodes  []*corev1.Node
		pods   []*corev1.Pod
		early  string
		checks int
	}{
		"all are ready":                      {[]*corev1.Node{reported("10", corev1.ConditionTrue)}, []*corev1.Pod{gated("11"), gated("12", yes, open(podv1alpha1.ReasonAllReady)), gated("13", yes, open(podv1alpha1.ReasonAllReady), ready(3))}, "", 1},
		"the pod was not programmed":         {[]*corev1.Node{reported("10", corev1.ConditionTrue)}, []*corev1.Pod{gated("12", open(podv1alpha1.ReasonAllReady), ready(3))}, "before policy was ready", 1},
		"it is programmed a moment later":    {[]*corev1.Node{reported("10", corev1.ConditionTrue)}, []*corev1.Pod{gated("12", open(podv1alpha1.ReasonAllReady)), gated("13", yes, open(podv1alpha1.ReasonAllReady), ready(3))}, "before policy was ready", 1},
		"its condition is False":             {[]*corev1.Node{reported("10", corev1.ConditionTrue)}, []*corev1.Pod{gated("12", says(programmed, corev1.ConditionFalse, "", 1), open(podv1alpha1.ReasonAllReady))}, "before policy was ready", 0},
		"it is of the sandbox before":        {[]*corev1.Node{reported("10", corev1.ConditionTrue)}, []*corev1.Pod{gated("12", says(programmed, corev1.ConditionTrue, "", -1), open(podv1alpha1.ReasonAllReady))}, "before policy was ready", 0},
		"flannel was not up":                 {[]*corev1.Node{reported("10", corev1.ConditionFalse)}, []*corev1.Pod{gated("12", yes, open(podv1alpha1.ReasonAllReady), ready(3))}, "before flannel was ready", 1},
		"flannel was up a moment later":      {[]*corev1.Node{reported("10", corev1.ConditionFalse), reported("13", corev1.ConditionTrue)}, []*corev1.Pod{gated("12", yes, open(podv1alpha1.ReasonAllReady), ready(3))}, "before flannel was ready", 1},
		"flannel was up until then":          {[]*corev1.Node{reported("10", corev1.ConditionTrue), reported("13", corev1.ConditionFalse)}, []*corev1.Pod{gated("12", yes, open(podv1alpha1.ReasonAllReady), ready(3))}, "", 1},
		"the gate is closed":                 {nil, []*corev1.Pod{gated("12", yes, ready(3))}, "was Ready while its gate was closed", 1},
		"it is Ready before its gate opens":  {nil, []*corev1.Pod{gated("12", ready(3)), gated("13", open(podv1alpha1.ReasonRuleDeleted), ready(3))}, "was Ready while its gate was closed", 1},
		"the rule is deleted":                {nil, []*corev1.Pod{gated("12", open(podv1alpha1.ReasonRuleDeleted), ready(3))}, "", 1},
		"it waits":                           {nil, []*corev1.Pod{gated("12", yes)}, "", 0},
		"it has no gate":                     {nil, []*corev1.Pod{pod("12", "n")}, "", 0},
		"its gate is closed, and opened":     {[]*corev1.Node{reported("10", corev1.ConditionTrue)}, []*corev1.Pod{gated("12", yes, open(podv1alpha1.ReasonAllReady), ready(3)), gated("13", yes), gated("14", yes, open(podv1alpha1.ReasonAllReady), ready(4))}, "", 2},
		"it stays Ready with a closed gate":  {nil, []*corev1.Pod{gated("12", open(podv1alpha1.ReasonRuleDeleted), ready(3)), gated("13", ready(3))}, "", 1}, // the kubelet has not seen it yet
		"the watch of nodes is behind at 12": {nil, []*corev1.Pod{gated("12", yes, open(podv1alpha1.ReasonAllReady), ready(3))}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := monitorOfPods(t)
			for _, n := range test.nodes {
				w.ObserveNode(n)
			}
			for _, p := range test.pods {
				w.ObservePod(p)
			}
			found, checks := w.EarlyReady()
			if checks != test.checks || (len(found) > 0) != (test.early != "") || test.early != "" && !strings.Contains(found[0], test.early) {
				t.Errorf("%q, %d checks; want %q, %d checks", found, checks, test.early, test.checks)
			}
		})
	}
}

func TestMonitorReportsTheGatesOfPods(t *testing.T) {
	w := monitorOfPods(t)
	for _, test := range []struct {
		pod  *corev1.Pod
		want scenario.PodState
	}{
		{gated("1"), scenario.PodState{Node: "n", Gated: true, Waiting: true}},
		{gated("2", says(podv1alpha1.DefaultGate, corev1.ConditionFalse, podv1alpha1.ReasonWaiting, 2)), scenario.PodState{Node: "n", Gated: true, Waiting: true, Reasons: []string{podv1alpha1.ReasonWaiting}}},
		{gated("3", open(podv1alpha1.ReasonRuleDeleted), ready(3)), scenario.PodState{Node: "n", Gated: true, Ready: true, Reasons: []string{podv1alpha1.ReasonRuleDeleted}}},
	} {
		w.ObservePod(test.pod)
		got := w.PodStates()
		if len(got) != 1 || !slices.Equal(got[0].Reasons, test.want.Reasons) {
			t.Fatalf("%+v, want %+v", got, test.want)
		}
		if got[0].Node != test.want.Node || got[0].Gated != test.want.Gated || got[0].Waiting != test.want.Waiting || got[0].Ready != test.want.Ready {
			t.Errorf("%+v, want %+v", got[0], test.want)
		}
	}
}

func TestOpenedGatesAndTheirDelaysAreCounted(t *testing.T) {
	clock := noon
	w := demo.NewMonitor(func() time.Time { return clock })
	yes := says(programmed, corev1.ConditionTrue, "", 1)
	w.ObservePod(gated("1"))
	clock = clock.Add(time.Minute)
	w.ObservePod(gated("2", yes))
	clock = clock.Add(30 * time.Millisecond)
	w.ObservePod(gated("3", yes, open(podv1alpha1.ReasonAllReady)))
	if got := w.Numbers(); !strings.Contains(got, "1 gates opened; from the last component ready to gate open: median 30ms, maximum 30ms") {
		t.Error(got)
	}
}
