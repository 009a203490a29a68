package podgate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/testenv"
)

const latchEnded = `{"terminated": {"exitCode": 0}}`

// latchIs makes the kubelet report the state of the pod's latch.
func (s *stage) latchIs(pod *corev1.Pod, state string) {
	s.t.Helper()
	s.patchStatus(pod, fmt.Sprintf(`{"status": {"initContainerStatuses": [{"name": %q, "image": %q, "imageID": "", "ready": false, "restartCount": 0, "state": %s}]}}`,
		v1alpha1.LatchName, latchImage, state))
}

// held creates a pod whose latch runs and whose gate the agent opens.
func (s *stage) held(rule *v1alpha1.PodReadinessRule, name, ip string) *corev1.Pod {
	s.t.Helper()
	pod := s.pod("web", named(name))
	s.latchIs(pod, fmt.Sprintf(`{"running": {"startedAt": %q}}`, time.Now().UTC().Format(time.RFC3339)))
	s.says(pod, corev1.ConditionTrue)
	s.sandbox(pod, ip, time.Now())
	return s.wantGate(pod, rule.Spec.Gate, allReady)
}

// touches returns how often the latch key of a pod was written again.
func (s *stage) touches(pod *corev1.Pod) int {
	s.t.Helper()
	key, ok := latchkey.Parse(s.get(pod).Annotations[v1alpha1.LatchAnnotation])
	if !ok || !key.Open {
		s.t.Errorf("the key of %s is %+v", pod.Name, key)
	}
	return key.Touches
}

// wantTouches waits until the latch key of a pod was written again this often.
func (s *stage) wantTouches(pod *corev1.Pod, atLeast int) {
	s.t.Helper()
	testenv.Eventually(s.t, fmt.Sprintf("%d touches of %s", atLeast, pod.Name), func(context.Context) error {
		if n := s.touches(pod); n < atLeast {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// The kubelet can miss the update that opens a latch. While the latch's container runs, the agent writes
// the key again, and the pod does not count as open.
func TestAKeyIsWrittenAgainWhileTheLatchRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	agent := s.startAgent()
	s.enforce(rule)

	ends := s.held(rule, "ends", "127.0.21.1")
	got := s.wantRule(rule, "not open", counts(v1alpha1.PodSummary{Gated: 1, Waiting: 1, LatchClosed: 1}))
	wantListed(t, got.Status.WaitingPods, map[string]v1alpha1.ListedPod{ends.Name: {Node: s.id, Why: podrule.LatchClosedWords}})
	s.wantTouches(ends, 1)
	s.latchIs(ends, latchEnded)
	s.wantRule(rule, "open", counts(v1alpha1.PodSummary{Gated: 1, Open: 1}))
	before := s.touches(ends)

	// This one is touched a second time, later than the one before would have been.
	stays := s.held(rule, "stays", "127.0.21.2")
	s.wantTouches(stays, before+1)
	if touches, writes := s.touches(ends), s.writes(ends); touches != before || writes != 1+before {
		t.Errorf("the pod whose latch has ended was written %d times, and its key touched %d times, %d of them while the latch ran", writes, touches, before)
	}

	// An agent before this one has touched it as often as any agent does.
	own, key := s.touches(stays), strings.TrimRight(s.get(stays).Annotations[v1alpha1.LatchAnnotation], " ")
	s.patchStatus(stays, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, v1alpha1.LatchAnnotation, key+strings.Repeat(" ", latchkey.MaxTouches)))
	s.wantEvent(stays, v1alpha1.EventLatchClosed, podrule.LatchClosedWords, s.id)
	for name, want := range map[string]float64{"readygate_podgate_latch_closed_pods": 1, "readygate_podgate_waiting_pods": 1, "readygate_podgate_latch_touches_total": float64(before + own)} {
		if got := sumOf(t, agent.metrics, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	s.latchIs(stays, latchEnded)
	s.wantRule(rule, "both open", counts(v1alpha1.PodSummary{Gated: 2, Open: 2}))
	if n := s.writes(stays); n != 1+own {
		t.Errorf("the pod whose key has used all touches was written %d times, %d of them touches", n, own)
	}
}
