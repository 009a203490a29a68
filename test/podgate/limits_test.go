package podgate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// opening returns the patch of a gate with this status and reason, and this latch key.
func opening(gate, status, reason, key string) string {
	return fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}, "status": {"conditions": [{"type": %q, "status": %q, "reason": %q}]}}`,
		v1alpha1.LatchAnnotation, key, gate, status, reason)
}

// try sends a dry-run patch of a pod's status, and returns the error.
func try(ctx context.Context, as client.Client, pod *corev1.Pod, patch string) error {
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return as.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.DryRunAll)
}

// clientOf returns a client with this identity.
func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	as, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// wantAnswer checks that a request was accepted if refusal is empty, and otherwise that the policy
// rejected it with this text.
func wantAnswer(t *testing.T, what string, answer error, by, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && answer != nil:
		t.Errorf("%s is refused: %v", what, answer)
	case refusal != "" && !refusedBy(answer, by, refusal):
		t.Errorf("%s must be refused because of %q, got %v", what, refusal, answer)
	}
}

func refusedBy(answer error, by, words string) bool {
	return apierrors.IsForbidden(answer) && strings.Contains(answer.Error(), "ValidatingAdmissionPolicy '"+by+"'") && strings.Contains(answer.Error(), words)
}

// wantLimited waits until the policy is in force.
func wantLimited(t *testing.T, as client.Client, pod *corev1.Pod, by string) {
	t.Helper()
	testenv.Eventually(t, by+" to act", func(ctx context.Context) error {
		if err := try(ctx, as, pod, `{"metadata": {"labels": {"probe": ""}}}`); !refusedBy(err, by, "metadata.labels") {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}

// A role can only allow "patch pods/status". The policy limits an agent, by the node in its token, to the gates of
// pods on its node. internal/core/admission tests every field.
func TestAnAgentIsLimitedToTheGatesOfItsNode(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const own = "example.com/own"
	gate := v1alpha1.DefaultGate
	other := s.id + "-other"
	s.node(other)
	here := s.pod("here", withGate(gate), withGate(own))
	there := s.pod("there", withGate(gate), onNode(other))
	s.sandbox(here, "127.0.8.1", longAgo())
	agent := clientOf(t, s.identity(s.id))
	wantLimited(t, agent, here, admission.PodgateName)

	const open = "open 127.0.8.1 boot 2026-11-16T10:00:00Z"
	const conditions, fields = "and not add, change, move or remove ", "an agent may change gates and the annotation " + v1alpha1.LatchAnnotation + " of a pod, and not "
	for name, tc := range map[string]struct {
		pod            *corev1.Pod
		patch, refusal string
	}{
		"its gate opened":            {here, opening(gate, "True", v1alpha1.ReasonAllReady, open), ""},
		"a pod of another node":      {there, opening(gate, "True", v1alpha1.ReasonAllReady, open), "this agent may write pods on its own node, " + s.id + ", and not on " + other},
		"the kubelet's Ready":        {here, opening("Ready", "True", "", open), conditions + "Ready"},
		"a gate that no rule has":    {here, opening(own, "True", "", open), conditions + own},
		"the phase":                  {here, `{"status": {"phase": "Failed"}}`, fields + "status.phase"},
		"a finalizer along with it":  {here, `{"metadata": {"finalizers": ["example.com/f"]}}`, fields + "metadata.finalizers"},
		"the latch without the gate": {here, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, v1alpha1.LatchAnnotation, open), ""},
	} {
		if err := try(t.Context(), s.Client, tc.pod, tc.patch); err != nil {
			t.Fatalf("%s: others are refused, too: %v", name, err)
		}
		wantAnswer(t, name, try(t.Context(), agent, tc.pod, tc.patch), admission.PodgateName, tc.refusal)
	}
	s.limitedToItsLease(agent, other)
	loose := s.identity(s.id)
	loose.BearerToken = s.Token(t, admission.ManagerNamespace, admission.PodgateAccount, nil)
	wantAnswer(t, "a token of no pod", try(t.Context(), clientOf(t, loose), here, opening(gate, "True", v1alpha1.ReasonAllReady, open)), admission.PodgateName, "the token contains no node name")
}

// limitedToItsLease checks that the agent of the stage's node can keep its own lease, and no other.
func (s *stage) limitedToItsLease(agent client.Client, other string) {
	s.t.Helper()
	for node, refusal := range map[string]string{s.id: "", other: "an agent may create and update its own lease, podgate-" + s.id} {
		wantAnswer(s.t, "the lease of "+node, agent.Create(s.t.Context(), s.newLease(node), client.DryRunAll), admission.PodgateName, refusal)
	}
}

// The policy limits the manager to opening gates. internal/core/admission tests every field.
func TestTheManagerMayOpenGatesAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	gate := v1alpha1.DefaultGate
	pod := s.pod("web", withGate(gate))
	s.condition(pod, gate, corev1.ConditionFalse, time.Now())
	manager := s.As(t, testenv.ManagerUser)
	wantLimited(t, manager, pod, admission.OpenersName)
	const reasons = "may open gates with the reason " + v1alpha1.ReasonAgentGone + ", " + v1alpha1.ReasonRuleDeleted + ", " + v1alpha1.ReasonNotSelected + ", and close none"
	for name, tc := range map[string]struct{ patch, refusal string }{
		"the agent is gone":           {opening(gate, "True", v1alpha1.ReasonAgentGone, "always AgentGone"), ""},
		"the components are ready":    {opening(gate, "True", v1alpha1.ReasonAllReady, "always RuleDeleted"), reasons},
		"the gate is closed":          {opening(gate, "False", v1alpha1.ReasonRuleDeleted, "always RuleDeleted"), reasons},
		"the latch is closed":         {opening(gate, "True", v1alpha1.ReasonRuleDeleted, "closed - - -"), "may open the latch permanently, and not close it"},
		"the pod is said to be ended": {`{"status": {"phase": "Failed"}}`, "status.phase"},
	} {
		if err := try(t.Context(), s.Client, pod, tc.patch); err != nil {
			t.Fatalf("%s: others are refused, too: %v", name, err)
		}
		wantAnswer(t, name, try(t.Context(), manager, pod, tc.patch), admission.OpenersName, tc.refusal)
	}
}
