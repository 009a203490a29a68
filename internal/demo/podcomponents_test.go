package demo_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/scenario"
)

// engine simulates a policy engine that takes no time; it does not simulate flannel.
func engine(t *testing.T) (demo.PodComponents, <-chan demo.SetCondition) {
	t.Helper()
	set := make(chan demo.SetCondition)
	p := demo.NewPodComponents(map[string]scenario.Component{
		"flannel": {Condition: flannel},
		"policy":  {PodCondition: programmed},
	}, set)
	return p, set
}

// sandboxed is a pod on a node whose sandbox is there since so many seconds after noon.
func sandboxed(name, on string, second int, conditions ...corev1.PodCondition) *corev1.Pod {
	p := pod("1", on)
	p.Name, p.Namespace, p.UID = name, demo.Namespace, types.UID(name)
	p.Status.PodIP = "10.0.0.1"
	p.Status.Conditions = append([]corev1.PodCondition{says("PodReadyToStartContainers", corev1.ConditionTrue, "", second)}, conditions...)
	return p
}

// expectSet waits for the next condition, and fails if it is another one.
func expectSet(t *testing.T, set <-chan demo.SetCondition, pod string, status corev1.ConditionStatus) {
	t.Helper()
	got := <-set
	if got.Component != "policy" || got.Pod != pod || string(got.Condition.Type) != programmed || got.Condition.Status != status {
		t.Errorf("set %+v, want %s by policy for %s", got, status, pod)
	}
	if got.Condition.LastTransitionTime.IsZero() || got.Condition.Reason == "" {
		t.Errorf("the condition has no time or reason: %+v", got.Condition)
	}
}

// expectNoMore waits until nothing is programmed, and fails if a condition is set meanwhile.
func expectNoMore(t *testing.T, p demo.PodComponents, set <-chan demo.SetCondition) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		close(done)
	}()
	for {
		select {
		case more := <-set:
			t.Errorf("also set: %+v", more)
		case <-done:
			return
		}
	}
}

func TestAComponentProgramsThePodsOfItsNodeOnce(t *testing.T) {
	p, set := engine(t)
	if !p.Sets("policy") || p.Sets("flannel") {
		t.Error("a component with a reporter sets conditions of pods, or one with podCondition does not")
	}
	p.Observe(t.Context(), sandboxed("early", "a", 1))
	p.Observe(t.Context(), sandboxed("elsewhere", "b", 1))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	expectSet(t, set, "early", corev1.ConditionTrue)
	p.Observe(t.Context(), sandboxed("late", "a", 5))
	expectSet(t, set, "late", corev1.ConditionTrue)
	p.Observe(t.Context(), sandboxed("late", "a", 5, says(programmed, corev1.ConditionTrue, "", 6)))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	expectNoMore(t, p, set)
}

func TestAPodWithoutASandboxIsNotProgrammed(t *testing.T) {
	p, set := engine(t)
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	p.Observe(t.Context(), pod("1", "a"))
	gone := sandboxed("gone", "a", 1)
	gone.Status.Conditions[0].Status = corev1.ConditionFalse
	p.Observe(t.Context(), gone)
	expectNoMore(t, p, set)
}

func TestForANewSandboxAComponentFirstSetsFalse(t *testing.T) {
	p, set := engine(t)
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	p.Observe(t.Context(), sandboxed("p", "a", 1))
	expectSet(t, set, "p", corev1.ConditionTrue)
	p.Observe(t.Context(), sandboxed("p", "a", 9, says(programmed, corev1.ConditionTrue, "", 2)))
	expectSet(t, set, "p", corev1.ConditionFalse)
	expectSet(t, set, "p", corev1.ConditionTrue)
	expectNoMore(t, p, set)
}

func TestAComponentThatIsDownSetsNothing(t *testing.T) {
	p, set := engine(t)
	p.Observe(t.Context(), sandboxed("p", "a", 1))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	expectSet(t, set, "p", corev1.ConditionTrue)
	p.SetHealth(t.Context(), "a", "policy", scenario.Down)
	p.Observe(t.Context(), sandboxed("p", "a", 9, says(programmed, corev1.ConditionTrue, "", 2)))
	p.Observe(t.Context(), sandboxed("q", "a", 9))
	expectNoMore(t, p, set)
}

// interrupted returns an engine that goes down while it programs a pod again: it has set False, but not
// True.
func interrupted(t *testing.T) (demo.PodComponents, <-chan demo.SetCondition) {
	t.Helper()
	p, set := engine(t)
	p.Observe(t.Context(), sandboxed("p", "a", 1, says(programmed, corev1.ConditionTrue, "", 0)))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	p.SetHealth(t.Context(), "a", "policy", scenario.Down) // while its write blocks
	expectSet(t, set, "p", corev1.ConditionFalse)
	return p, set
}

func TestAComponentThatGoesDownMeanwhileSetsNothingMore(t *testing.T) {
	p, set := interrupted(t)
	expectNoMore(t, p, set)
}

func TestRecoveredComponentProgramsTheRemainingPods(t *testing.T) {
	p, set := interrupted(t)
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	got := <-set
	if got.Condition.Status == corev1.ConditionFalse { // it had dropped the program before, and starts again
		got = <-set
	}
	if got.Condition.Status != corev1.ConditionTrue {
		t.Errorf("set %+v", got)
	}
	expectNoMore(t, p, set)
}

func TestAfterTheContextNothingIsStarted(t *testing.T) {
	p, set := engine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.SetHealth(ctx, "a", "policy", scenario.Up)
	p.Observe(ctx, sandboxed("p", "a", 1))
	expectNoMore(t, p, set)
}
