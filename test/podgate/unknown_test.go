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

// deafness keeps from a client what watches of rules tell, while it is locked.
type deafness struct{ sync.RWMutex }

// afflict is an option of an agent that hears of rules only while the deafness is not locked.
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

// Read returns what was said when it can be heard.
func (d deafBody) Read(into []byte) (int, error) {
	n, err := d.ReadCloser.Read(into)
	d.deafness.RLock()
	defer d.deafness.RUnlock()
	return n, err
}

// The API server knows a rule before an agent does. A gate whose rule the agent does not know is not
// one that nobody asks for.
//
// It is not parallel to others: while an agent has not seen a rule, none is called enforced.
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
