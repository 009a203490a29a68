package demo_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/scenario"
)

// engine is a policy engine that takes no time, and flannel, which is not played by it.
func engine(t *testing.T) (demo.PodComponents, <-chan demo.SetCondition) {
	t.Helper()
	said := make(chan demo.SetCondition)
	p := demo.NewPodComponents(map[string]scenario.Component{
		"flannel": {Condition: flannel},
		"policy":  {PodCondition: programmed},
	}, said)
	return p, said
}

// sandboxed is a pod on a node whose sandbox is there since so many seconds after noon.
func sandboxed(name, on string, second int, conditions ...corev1.PodCondition) *corev1.Pod {
	p := pod("1", on)
	p.Name, p.Namespace, p.UID = name, demo.Namespace, types.UID(name)
	p.Status.PodIP = "10.0.0.1"
	p.Status.Conditions = append([]corev1.PodCondition{says("PodReadyToStartContainers", corev1.ConditionTrue, "", second)}, conditions...)
	return p
}

// hears waits for the next condition, and looks whether it is this one.
func hears(t *testing.T, said <-chan demo.SetCondition, pod string, status corev1.ConditionStatus) {
	t.Helper()
	got := <-said
	if got.Component != "policy" || got.Pod != pod || string(got.Condition.Type) != programmed || got.Condition.Status != status {
		t.Errorf("said %+v, want that policy says %s of %s", got, status, pod)
	}
	if got.Condition.LastTransitionTime.IsZero() || got.Condition.Reason == "" {
		t.Errorf("the condition has no time or reason: %+v", got.Condition)
	}
}

// over waits until everybody has said everything, and fails if there was something.
func over(t *testing.T, p demo.PodComponents, said <-chan demo.SetCondition) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		p.Stop()
		close(done)
	}()
	for {
		select {
		case more := <-said:
			t.Errorf("it was also said: %+v", more)
		case <-done:
			return
		}
	}
}

func TestAComponentProgramsThePodsOfItsNodeOnce(t *testing.T) {
	p, said := engine(t)
	if !p.Sets("policy") || p.Sets("flannel") {
		t.Error("what has a reporter is played, or what sets conditions of pods is not")
	}
	p.Observe(t.Context(), sandboxed("early", "a", 1))
	p.Observe(t.Context(), sandboxed("elsewhere", "b", 1))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	hears(t, said, "early", corev1.ConditionTrue)
	p.Observe(t.Context(), sandboxed("late", "a", 5))
	hears(t, said, "late", corev1.ConditionTrue)
	p.Observe(t.Context(), sandboxed("late", "a", 5, says(programmed, corev1.ConditionTrue, "", 6)))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	over(t, p, said)
}

func TestAPodWithoutASandboxIsNotProgrammed(t *testing.T) {
	p, said := engine(t)
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	p.Observe(t.Context(), pod("1", "a"))
	gone := sandboxed("gone", "a", 1)
	gone.Status.Conditions[0].Status = corev1.ConditionFalse
	p.Observe(t.Context(), gone)
	over(t, p, said)
}

func TestComponentResetsItsConditionForANewSandbox(t *testing.T) {
	p, said := engine(t)
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	p.Observe(t.Context(), sandboxed("p", "a", 1))
	hears(t, said, "p", corev1.ConditionTrue)
	p.Observe(t.Context(), sandboxed("p", "a", 9, says(programmed, corev1.ConditionTrue, "", 2)))
	hears(t, said, "p", corev1.ConditionFalse)
	hears(t, said, "p", corev1.ConditionTrue)
	over(t, p, said)
}

func TestComponentThatIsDownSetsNoCondition(t *testing.T) {
	p, said := engine(t)
	p.Observe(t.Context(), sandboxed("p", "a", 1))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	hears(t, said, "p", corev1.ConditionTrue)
	p.SetHealth(t.Context(), "a", "policy", scenario.Down)
	p.Observe(t.Context(), sandboxed("p", "a", 9, says(programmed, corev1.ConditionTrue, "", 2)))
	p.Observe(t.Context(), sandboxed("q", "a", 9))
	over(t, p, said)
}

// interrupted is an engine that goes down while it programs a pod anew: it has said that it does, and
// not yet that it has.
func interrupted(t *testing.T) (demo.PodComponents, <-chan demo.SetCondition) {
	t.Helper()
	p, said := engine(t)
	p.Observe(t.Context(), sandboxed("p", "a", 1, says(programmed, corev1.ConditionTrue, "", 0)))
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	p.SetHealth(t.Context(), "a", "policy", scenario.Down) // while nobody listens to it
	hears(t, said, "p", corev1.ConditionFalse)
	return p, said
}

func TestComponentThatGoesDownStopsSettingConditions(t *testing.T) {
	p, said := interrupted(t)
	over(t, p, said)
}

func TestRecoveredComponentProgramsTheRemainingPods(t *testing.T) {
	p, said := interrupted(t)
	p.SetHealth(t.Context(), "a", "policy", scenario.Up)
	got := <-said
	if got.Condition.Status == corev1.ConditionFalse { // it had given up before, and begins anew
		got = <-said
	}
	if got.Condition.Status != corev1.ConditionTrue {
		t.Errorf("said %+v", got)
	}
	over(t, p, said)
}

func TestNothingStartsAfterTheScenario(t *testing.T) {
	p, said := engine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.SetHealth(ctx, "a", "policy", scenario.Up)
	p.Observe(ctx, sandboxed("p", "a", 1))
	over(t, p, said)
}
