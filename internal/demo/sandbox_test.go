package demo_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/demo"
)

// patched returns a pod after a strategic merge patch of its status.
func patched(t *testing.T, p *corev1.Pod, status map[string]any) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	data, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	after := &corev1.Pod{}
	if err := json.Unmarshal(data, after); err != nil {
		t.Fatal(err)
	}
	return after
}

func statusOf(p *corev1.Pod, kind string) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if string(c.Type) == kind {
			return c.Status
		}
	}
	return "none"
}

func TestAPodLosesItsSandboxAndGetsAnotherOne(t *testing.T) {
	for name, gates := range map[string][]corev1.PodReadinessGate{"with a gate": {{ConditionType: podv1alpha1.DefaultGate}}, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			before := gated("1", says("ContainersReady", corev1.ConditionTrue, "", 1), open(podv1alpha1.ReasonAllReady), ready(3))
			before.Spec.ReadinessGates = gates
			before.Status.PodIP, before.Status.PodIPs = "10.0.0.7", []corev1.PodIP{{IP: "10.0.0.7"}}

			gone := patched(t, before, demo.SandboxGone())
			if !podrule.SandboxSince(gone).IsZero() || statusOf(gone, "ContainersReady") != corev1.ConditionFalse || statusOf(gone, "Ready") != corev1.ConditionFalse {
				t.Errorf("it has lost its sandbox, and says %+v", gone.Status.Conditions)
			}
			there := patched(t, gone, demo.SandboxThere(gone, 1))
			if since := podrule.SandboxSince(there); !since.After(podrule.SandboxSince(before)) || statusOf(there, "ContainersReady") != corev1.ConditionTrue {
				t.Errorf("it has a new sandbox, and says %+v", there.Status.Conditions)
			}
			if ips := there.Status.PodIPs; len(ips) != 1 || ips[0].IP == "10.0.0.7" || ips[0].IP != there.Status.PodIP {
				t.Errorf("its addresses are %v and %s", ips, there.Status.PodIP)
			}
			if got, want := statusOf(there, "Ready") == corev1.ConditionTrue, gates == nil; got != want {
				t.Errorf("it is Ready: %v, want %v, for KWOK looks at gates", got, want)
			}
			if statusOf(there, podv1alpha1.DefaultGate) != corev1.ConditionTrue {
				t.Error("its gate was touched: that is the agent's")
			}
			for _, c := range there.Status.Conditions {
				if c.Status == corev1.ConditionTrue && c.Reason == "ContainersNotReady" {
					t.Errorf("the reason of before is still there: %+v", c)
				}
			}
		})
	}
}
