package podgate_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/podgate"
)

// deafness delays the watch events of rules for a client while it is locked.
type deafness struct{ sync.RWMutex }

// afflict is an option of an agent that gets watch events of rules only while the deafness is not locked.
func (d *deafness) afflict(o *podgate.Options) {
	o.RestConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return deafTransport{next, d} })
}

type deafTransport struct {
	http.RoundTripper
	deafness *deafness
}

// RoundTrip implements http.RoundTripper.
func (d deafTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/podreadinessrules") && r.URL.Query().Has("watch") {
		answer.Body = deafBody{answer.Body, d.deafness}
	}
	return answer, err
}

type deafBody struct {
	io.ReadCloser
	deafness *deafness
}

// Read returns the data when the deafness is not locked.
func (d deafBody) Read(into []byte) (int, error) {
	n, err := d.ReadCloser.Read(into)
	d.deafness.RLock()
	defer d.deafness.RUnlock()
	return n, err
}

// The API server has a rule before the cache of an agent has it. The agent must not open a gate
// because its cache lacks the rule.
//
// It does not run in parallel: while the cache of an agent lacks a rule, no rule is reported as enforced.
func TestAGateWhoseRuleTheAgentDoesNotKnowYetIsNotOpened(t *testing.T) {
	s := newStage(t)
	var deaf deafness
	agent := s.startAgent(deaf.afflict)
	deaf.Lock()
	t.Cleanup(deaf.Unlock) // before the agent ends
	rule := s.rule("web")
	s.Create(t, rule)
	s.wantRule(rule, "covered, and not seen by the agent", func(r *v1alpha1.PodReadinessRule) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, "1 agent has not evaluated") })
	})
	pod := s.pod("web")
	if gates, _ := gatesOf(pod); len(gates) != 1 {
		t.Fatalf("the pod has the gates %v", gates)
	}
	history := s.follow(pod, rule.Spec.Gate)
	s.sandbox(pod, "127.0.12.1", longAgo())
	s.wantGate(pod, rule.Spec.Gate, waits, "waiting for policy")
	s.says(pod, corev1.ConditionTrue)
	s.wantGate(pod, rule.Spec.Gate, allReady)
	for _, was := range history() {
		if was != absent && was != waits && was != allReady {
			t.Errorf("the gate was %s", was)
		}
	}
	s.wantReport(agent, "nothing of the rule", func(r agents.Report) bool {
		_, known := r.Rules[rule.UID]
		return !known
	})
}
