package podgate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
)

var noAgent = is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNoAgent)

// died leaves an expired lease of the stage's node.
func (s *stage) died() {
	s.t.Helper()
	lease := s.newLease(s.id)
	err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(lease), lease)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	if err != nil {
		s.Create(s.t, lease)
	}
	s.Patch(s.t, lease, func() {
		lease.Spec.HolderIdentity = ptr.To("dead")
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-2 * agents.Lasts)))
	})
}

// On a node without a live agent, the manager opens late pods if
// the rule has onDeadline Open, and emits an event for the others.
func TestPodsOfADeadAgentAreOpenedOrReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	opens, reports := s.rule("opens", deadline(10, v1alpha1.DeadlineOpen), startHold), s.rule("reports", deadline(10, v1alpha1.DeadlineReport))
	patient := s.rule("patient", deadline(3600, v1alpha1.DeadlineOpen))
	s.enforce(opens, reports, patient)
	s.died()
	opened, reported, waiting := s.pod("opens"), s.pod("reports"), s.pod("patient")
	for _, pod := range []*corev1.Pod{opened, reported, waiting} {
		s.sandbox(pod, "127.0.10.1", longAgo())
	}
	gone := "True " + v1alpha1.ReasonAgentGone
	s.wantGate(opened, opens.Spec.Gate, gone, "no live podgate agent", "the deadline of rule "+opens.Name+" has passed")
	s.wantOpenForGood(opened, opens.Spec.Gate, v1alpha1.ReasonAgentGone)
	s.wantEvent(opened, v1alpha1.EventOpened, "no live podgate agent", opens.Name)

	s.wantEvent(reported, v1alpha1.EventLate, s.id, reports.Spec.Gate, "10s", reports.Name)
	got := s.wantRule(reports, "late, without an agent", counts(v1alpha1.PodSummary{Gated: 1, Waiting: 1, Late: 1, WithoutAgent: 1}))
	if !noAgent(got) || !slices.Equal(got.Status.NodesWithoutAgent, []string{s.id}) {
		t.Errorf("status is %+v", got.Status)
	}
	if message := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionEnforced).Message; !strings.Contains(message, s.id) {
		t.Errorf("the node is not named: %s", message)
	}
	s.wantRule(patient, "not late", counts(v1alpha1.PodSummary{Gated: 1, Waiting: 1, WithoutAgent: 1}))
	for pod, gate := range map[*corev1.Pod]string{reported: reports.Spec.Gate, waiting: patient.Spec.Gate} {
		if is := gateOf(s.get(pod), gate); is != absent {
			t.Errorf("the gate of %s is %s: the manager closes none", pod.Name, is)
		}
	}

	// An agent that comes goes on from there.
	s.startAgent()
	s.says(reported, corev1.ConditionTrue)
	s.wantGate(reported, reports.Spec.Gate, allReady)
	s.wantGate(waiting, patient.Spec.Gate, waits)
	s.wantRule(reports, "enforced again", func(r *v1alpha1.PodReadinessRule) bool {
		return enforced(r) && counts(v1alpha1.PodSummary{Gated: 1, Open: 1})(r) && len(r.Status.NodesWithoutAgent) == 0
	})
	s.wantGate(opened, opens.Spec.Gate, gone)
	if key := s.get(opened).Annotations[v1alpha1.LatchAnnotation]; !strings.HasPrefix(key, "open 127.0.10.1 ") {
		t.Errorf("the key is %q: it would open the next sandbox, too, though there is an agent", key)
	}
}

// An open pod stays open, and counts as open, when its agent has died.
func TestOpenPodsOfADeadAgentCountAsOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web")
	agent := s.startAgent()
	s.enforce(rule)
	open, waiting := s.pod("web", named("open")), s.pod("web", named("waiting"))
	s.says(open, corev1.ConditionTrue)
	for _, pod := range []*corev1.Pod{open, waiting} {
		s.sandbox(pod, "127.0.10.2", longAgo())
	}
	s.wantGate(open, rule.Spec.Gate, allReady)
	s.wantGate(waiting, rule.Spec.Gate, waits)
	s.wantDecided(agent, rule.UID, 1, 1)
	before := s.get(open)
	agent.stop()
	s.died()
	got := s.wantRule(rule, "two without an agent", func(r *v1alpha1.PodReadinessRule) bool {
		return noAgent(r) && r.Status.Summary.WithoutAgent == 2
	})
	if !counts(v1alpha1.PodSummary{Gated: 2, Open: 1, Waiting: 1, WithoutAgent: 2})(got) || len(got.Status.WaitingPods) != 1 || got.Status.WaitingPods[0].Name != waiting.Name {
		t.Errorf("counted are %+v, listed %+v", got.Status.Summary, got.Status.WaitingPods)
	}
	if after := s.get(open); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the pod was written: %+v", after.Status.Conditions)
	}
}
