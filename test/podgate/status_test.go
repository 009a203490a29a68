package podgate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/testenv"
)

// later waits until a new object gets a later creation time than this one: times have a resolution of one second.
func (s *stage) later(than client.Object) {
	s.t.Helper()
	testenv.Eventually(s.t, "a later second", func(ctx context.Context) error {
		clock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.id, GenerateName: "clock-"}}
		if err := s.Client.Create(ctx, clock, client.DryRunAll); err != nil {
			return err
		}
		if !clock.CreationTimestamp.After(than.GetCreationTimestamp().Time) {
			return errors.New("still the same second")
		}
		return nil
	})
}

// The status counts the open and waiting pods of a rule, and lists the pods without a gate with the reason.
func TestARuleCountsItsPods(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	alone := s.id + "-alone"
	s.node(alone)
	older := s.pod("web", named("older"))
	s.later(older)
	rule := s.rule("web")
	s.startAgent()
	s.enforce(rule)

	relabelled := s.pod("other", named("relabelled"))
	s.Patch(t, relabelled, func() { relabelled.Labels["app"] = "web" })
	open, waiting := s.pod("web", named("open")), s.pod("web", named("waiting"))
	s.says(open, corev1.ConditionTrue)
	for _, pod := range []*corev1.Pod{open, waiting} {
		s.sandbox(pod, "127.0.11.1", longAgo())
	}
	s.pod("web", named("starting"))
	s.pod("web", named("lone"), onNode(alone))
	s.pod("web", named("pending"), unscheduled)
	s.pod("web", named("opted-out"), optOut)
	over := s.pod("web", named("over"))
	s.patchStatus(over, `{"status": {"phase": "Succeeded"}}`)

	got := s.wantRule(rule, "counted", counts(v1alpha1.PodSummary{Gated: 4, Open: 1, Waiting: 3, Ungated: 2, WithoutAgent: 1}))
	if !noAgent(got) || !slices.Equal(got.Status.NodesWithoutAgent, []string{alone}) {
		t.Errorf("nodes without an agent are %v, conditions %+v", got.Status.NodesWithoutAgent, got.Status.Conditions)
	}
	wantListed(t, got.Status.WaitingPods, map[string]v1alpha1.ListedPod{
		"waiting":  {Node: s.id, Why: "waiting for policy (the pod has no condition " + programmed + ")"},
		"starting": {Node: s.id, Why: "the pod has no network yet"},
		"lone":     {Node: alone, Why: "the pod has no network yet"},
	})
	wantListed(t, got.Status.UngatedPods, map[string]v1alpha1.ListedPod{
		"older":      {Node: s.id, Why: "the pod is older than the rule: recreate it to gate it"},
		"relabelled": {Node: s.id, Why: "the pod was created without the gate"},
	})
	if first := got.Status.WaitingPods[0]; first.Name != waiting.Name || first.Since == nil {
		t.Errorf("first is %+v, want the pod that waits longest", first)
	}
	if generation := got.Status.ObservedGeneration; generation != got.Generation {
		t.Errorf("observedGeneration is %d", generation)
	}
}

// wantListed checks that exactly these pods are listed, with their nodes and reasons.
func wantListed(t *testing.T, listed []v1alpha1.ListedPod, want map[string]v1alpha1.ListedPod) {
	t.Helper()
	if len(listed) != len(want) {
		t.Errorf("listed are %+v", listed)
	}
	for _, pod := range listed {
		if is, ok := want[pod.Name]; !ok || pod.Node != is.Node || !strings.Contains(pod.Why, is.Why) {
			t.Errorf("listed is %+v, want %+v", pod, is)
		}
	}
}

// The status does not grow with the cluster: counts are complete, lists are bounded.
func TestListsOfPodsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	alone := s.id + "-alone"
	s.node(alone)
	rule := s.rule("web")
	agent := s.startAgent()
	s.enforce(rule)
	const here, there = agents.Listed + 2, v1alpha1.MaxListedPods + 5
	for i := range here {
		s.pod("web", named(fmt.Sprintf("here-%d", i)))
	}
	for i := range there {
		s.pod("web", named(fmt.Sprintf("there-%02d", i)), onNode(alone))
	}
	s.wantReport(agent, "all counted, some listed", func(r agents.Report) bool {
		return r.Rules[rule.UID].Waiting == here && len(r.Rules[rule.UID].Waits) == agents.Listed
	})
	got := s.wantRule(rule, "all counted", counts(v1alpha1.PodSummary{Gated: here + there, Waiting: here + there, WithoutAgent: there}))
	if n := len(got.Status.WaitingPods); n != v1alpha1.MaxListedPods {
		t.Errorf("%d are listed", n)
	}
}
