package podgate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/testenv"
)

// wantClosedFirst waits until a gate that was open has been closed because of a new sandbox, and then
// opened again, and not before.
func wantClosedFirst(t *testing.T, history func() []string) {
	t.Helper()
	testenv.Eventually(t, "closed, then open", func(context.Context) error {
		seen := history()
		if len(seen) < 3 || seen[0] != allReady || seen[1] != newSandbox || seen[len(seen)-1] != allReady || slices.Contains(seen[1:len(seen)-1], allReady) {
			return fmt.Errorf("it was %q", seen)
		}
		return nil
	})
}

// Results about the previous sandbox do not count for a new one, even if all components would be
// ready again at once.
func TestANewSandboxClosesTheGateFirst(t *testing.T) {
	t.Parallel()
	s, h := newStage(t), newHost(t)
	rule := s.rule("web", components(byFile("file", "/run/{uid}")))
	s.startAgent(h.mounted)
	s.enforce(rule)
	pod := s.openByFile(h, rule)
	history := s.follow(pod, rule.Spec.Gate)
	s.sandbox(pod, "127.0.5.2", time.Now())
	wantClosedFirst(t, history)
	if got := s.get(pod).Annotations[v1alpha1.LatchAnnotation]; !strings.HasPrefix(got, "open 127.0.5.2 ") {
		t.Errorf("the key is %q", got)
	}
}

// openByFile returns a pod of the rule whose gate is open because of a file.
func (s *stage) openByFile(h host, rule *v1alpha1.PodReadinessRule) *corev1.Pod {
	s.t.Helper()
	pod := s.pod("web")
	h.write(string(pod.UID), "")
	s.condition(pod, programmed, corev1.ConditionTrue, longAgo())
	s.sandbox(pod, "127.0.5.1", longAgo())
	s.wantGate(pod, rule.Spec.Gate, allReady)
	return pod
}

// A component that is not ready for the new sandbox closes the gate, although it was ready for the previous one and the
// pod has the same address.
func TestANewSandboxIsProbedAgain(t *testing.T) {
	t.Parallel()
	s, h := newStage(t), newHost(t)
	rule := s.rule("web", components(byPodCondition("policy", programmed), byFile("file", "/run/{uid}")))
	s.startAgent(h.mounted)
	s.enforce(rule)
	pod := s.openByFile(h, rule)
	h.remove(string(pod.UID))
	s.noSandbox(pod)
	got := s.wantGate(pod, rule.Spec.Gate, newSandbox)
	if key, ok := latchkey.Parse(got.Annotations[v1alpha1.LatchAnnotation]); !ok || key.Open {
		t.Errorf("the key is %q", got.Annotations[v1alpha1.LatchAnnotation])
	}
	s.sandbox(pod, "127.0.5.1", time.Now())
	s.wantGate(pod, rule.Spec.Gate, waits, "condition "+programmed+" is older than the pod's sandbox", "file (no such file)")
	s.says(pod, corev1.ConditionTrue)
	s.wantGate(pod, rule.Spec.Gate, waits, "waiting for file (no such file)")
	h.write(string(pod.UID), "")
	s.wantGate(pod, rule.Spec.Gate, allReady)
}

// A restarted agent sets no gate to False, even before it has probed any component.
func TestARestartedAgentWritesNothing(t *testing.T) {
	t.Parallel()
	s, h := newStage(t), newHost(t)
	rule := s.rule("web", components(byPodCondition("policy", programmed), byFile("file", "/run/{uid}")), closesOnNotReady)
	first := s.startAgent(h.mounted)
	s.enforce(rule)
	pod := s.openByFile(h, rule)
	s.wantDecided(first, rule.UID, 1, 0)
	first.stop()
	before := s.get(pod)
	second := s.startAgent(h.mounted)
	s.wantDecided(second, rule.UID, 1, 0)
	if after := s.get(pod); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the pod was written: %+v, before %+v", after.Status.Conditions, before.Status.Conditions)
	}
}

// A new agent detects changes from before its start.
func TestASandboxThatChangesWhileTheAgentIsDownIsNoticed(t *testing.T) {
	t.Parallel()
	s, h := newStage(t), newHost(t)
	rule := s.rule("web", components(byFile("file", "/run/{uid}")))
	first := s.startAgent(h.mounted)
	s.enforce(rule)
	pod := s.openByFile(h, rule)
	first.stop()
	s.sandbox(pod, "127.0.5.1", time.Now())
	history := s.follow(pod, rule.Spec.Gate)
	s.startAgent(h.mounted)
	wantClosedFirst(t, history)
}

// After a boot the status of a pod describes its old sandbox for a while: it does not count
// until the kubelet reports a new one.
func TestAfterABootTheGateIsClosedUntilThereIsANewSandbox(t *testing.T) {
	t.Parallel()
	if boot.ID() == "" {
		t.Skip("this system does not say which boot it is in")
	}
	s, h := newStage(t), newHost(t)
	rule := s.rule("web", components(byFile("file", "/run/{uid}")))
	first := s.startAgent(h.mounted)
	s.enforce(rule)
	pod := s.openByFile(h, rule)
	first.stop()
	const anotherBoot = "00000000-0000-0000-0000-000000000000"
	key := strings.ReplaceAll(s.get(pod).Annotations[v1alpha1.LatchAnnotation], boot.ID(), anotherBoot)
	if !strings.Contains(key, anotherBoot) {
		t.Fatalf("the key does not name the boot: %q", key)
	}
	s.patchStatus(pod, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, v1alpha1.LatchAnnotation, key))
	second := s.startAgent(h.mounted)
	s.wantGate(pod, rule.Spec.Gate, newSandbox)
	s.wantReport(second, "it waits", func(r agents.Report) bool { return r.Rules[rule.UID].Waiting == 1 })
	if got := s.get(pod); gateOf(got, rule.Spec.Gate) != newSandbox {
		t.Errorf("the gate is %s", gateOf(got, rule.Spec.Gate))
	}
	s.sandbox(pod, "127.0.5.1", time.Now())
	s.wantGate(pod, rule.Spec.Gate, allReady)
}
