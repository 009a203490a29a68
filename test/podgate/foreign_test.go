package podgate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/testenv"
)

const plugin = "network-plugin"

// plugin is a client of a network plugin that may patch pods/status in the stage's namespace, with a token
// of its own.
func (s *stage) plugin() client.Client {
	s.t.Helper()
	meta := metav1.ObjectMeta{Namespace: s.id, Name: plugin}
	s.Create(s.t, &corev1.ServiceAccount{ObjectMeta: meta})
	s.Create(s.t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}}})
	s.Create(s.t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: plugin},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.id, Name: plugin}},
	})
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = s.Token(s.t, s.id, plugin, nil)
	return client.WithFieldOwner(clientOf(s.t, config), plugin)
}

// sends patches the status of a pod with an account.
func (s *stage) sends(as client.Client, pod *corev1.Pod, patch string) {
	s.t.Helper()
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := as.Status().Patch(s.t.Context(), target, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		s.t.Fatalf("patching the status of pod %s: %v", pod.Name, err)
	}
}

// opensGate sets the gate to True with an account.
func (s *stage) opensGate(as client.Client, pod *corev1.Pod, gate string) {
	s.t.Helper()
	s.sends(as, pod, fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": "True", "reason": "Programmed", "lastTransitionTime": %q}]}}`, gate, time.Now().UTC().Format(time.RFC3339)))
}

func wantLatchClosed(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if key, _ := latchkey.Parse(pod.Annotations[v1alpha1.LatchAnnotation]); key.Open {
		t.Errorf("the latch key is %q", pod.Annotations[v1alpha1.LatchAnnotation])
	}
}

// A network plugin that sets the gate itself while another component is missing does not open the pod: the
// agent sets the gate back three times, then stops and emits an event, and the latch stays closed.
func TestAForeignTrueIsSetBackThenReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	s.startAgent()
	s.enforce(rule)
	pod, other := s.pod("web"), s.plugin()
	s.sandbox(pod, "127.0.12.1", time.Now())
	for range 3 {
		s.opensGate(other, pod, rule.Spec.Gate)
		wantLatchClosed(t, s.wantGate(pod, rule.Spec.Gate, waits, "waiting for policy"))
	}
	s.opensGate(other, pod, rule.Spec.Gate)
	got := s.wantRule(rule, "a foreign True", counts(v1alpha1.PodSummary{Gated: 1, Waiting: 1, Foreign: 1}))
	if listed := got.Status.WaitingPods; len(listed) != 1 || !strings.Contains(listed[0].Why, "waiting for policy") {
		t.Errorf("listed are %+v", listed)
	}
	left := s.wantGate(pod, rule.Spec.Gate, "True Programmed")
	wantLatchClosed(t, left)
	if n := s.writes(pod); n != 3 {
		t.Errorf("agents wrote the pod %d times", n)
	}
	s.wantEvent(pod, v1alpha1.EventForeign, rule.Spec.Gate, `set to True by "`+plugin+`"`, "kubectl readiness why pod/"+pod.Name)

	s.says(pod, corev1.ConditionTrue)
	open := s.wantGate(pod, rule.Spec.Gate, allReady)
	if key := open.Annotations[v1alpha1.LatchAnnotation]; !strings.HasPrefix(key, "open 127.0.12.1 ") {
		t.Errorf("the latch key is %q", key)
	}
	s.wantRule(rule, "open", counts(v1alpha1.PodSummary{Gated: 1, Open: 1}))
	events, err := s.eventsAbout(t.Context(), pod)
	foreign := slices.DeleteFunc(events, func(e eventsv1.Event) bool { return e.Reason != v1alpha1.EventForeign })
	if err != nil || len(foreign) != 1 || foreign[0].Series != nil {
		t.Errorf("events are %+v (%v), want one", foreign, err)
	}
}

// Traffic is not interrupted: a Ready pod keeps the True, and the status counts it.
func TestAReadyPodKeepsAForeignTrue(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web")
	s.startAgent()
	s.enforce(rule)
	pod := s.pod("web")
	s.condition(pod, string(corev1.PodReady), corev1.ConditionTrue, time.Now())
	s.opensGate(s.plugin(), pod, rule.Spec.Gate)
	history := s.follow(pod, rule.Spec.Gate)
	s.sandbox(pod, "127.0.12.2", longAgo())
	s.wantRule(rule, "a foreign True", counts(v1alpha1.PodSummary{Gated: 1, Waiting: 1, Foreign: 1}))
	s.wantEvent(pod, v1alpha1.EventForeign, plugin)
	if n, seen := s.writes(pod), history(); n > 0 || !slices.Equal(seen, []string{"True Programmed"}) {
		t.Errorf("agents wrote the pod %d times, its gate was %q", n, seen)
	}
}

// A network plugin that implements the gate natively works. The agent takes over its True when all
// components are ready; an earlier True costs one more write.
func TestANativeNetworkPluginWorks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web")
	s.startAgent()
	s.enforce(rule)
	other := s.plugin()
	after, before := s.pod("web", named("after")), s.pod("web", named("before"))

	s.says(after, corev1.ConditionTrue)
	s.opensGate(other, after, rule.Spec.Gate)
	history := s.follow(after, rule.Spec.Gate)
	s.sandbox(after, "127.0.12.3", time.Now())
	s.wantGate(after, rule.Spec.Gate, allReady)
	if seen := history(); slices.ContainsFunc(seen, func(gate string) bool { return strings.HasPrefix(gate, "False") }) {
		t.Errorf("its gate was %q", seen)
	}

	s.sandbox(before, "127.0.12.4", time.Now())
	s.opensGate(other, before, rule.Spec.Gate)
	s.wantGate(before, rule.Spec.Gate, waits)
	s.says(before, corev1.ConditionTrue)
	s.wantGate(before, rule.Spec.Gate, allReady)

	for pod, want := range map[*corev1.Pod]int{after: 1, before: 2} {
		s.opensGate(other, pod, rule.Spec.Gate) // it writes its own reason again
		s.wantRule(rule, "open", counts(v1alpha1.PodSummary{Gated: 2, Open: 2}))
		if n := s.writes(pod); n != want {
			t.Errorf("agents wrote pod %s %d times, want %d", pod.Name, n, want)
		}
	}
}

// An agent that has observed the gate closed ignores a copied reason and latch key.
func TestAForgedDecisionIsSetBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	agent := s.startAgent()
	s.enforce(rule)
	other, keys := s.plugin(), map[string]string{v1alpha1.ReasonAllReady: "", v1alpha1.ReasonRuleDeleted: "always " + v1alpha1.ReasonRuleDeleted}
	pods := map[string]*corev1.Pod{}
	for reason := range keys {
		pods[reason] = s.pod("web", named(strings.ToLower(reason)))
		s.sandbox(pods[reason], "127.0.12.5", longAgo())
	}
	s.wantDecided(agent, rule.UID, 0, 2)
	for reason, pod := range pods {
		closed := s.wantGate(pod, rule.Spec.Gate, waits)
		key := keys[reason]
		if key == "" {
			key = strings.Replace(closed.Annotations[v1alpha1.LatchAnnotation], "closed ", "open ", 1)
		}
		s.sends(other, pod, opening(rule.Spec.Gate, "True", reason, key))
		testenv.Eventually(t, "gate and latch closed again: "+reason, func(context.Context) error {
			got := s.get(pod)
			if is, key := gateOf(got, rule.Spec.Gate), got.Annotations[v1alpha1.LatchAnnotation]; is != waits || !strings.HasPrefix(key, "closed ") {
				return fmt.Errorf("the gate is %s, the key %q", is, key)
			}
			return nil
		})
	}
}

// The optional policy reserves gates of rules: other accounts may close them and set other conditions.
func TestReservedGatesAreOpenedByReadygateOnly(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	s.enforce(rule)
	gate := rule.Spec.Gate
	pod, free := s.pod("web"), s.pod("other", withGate(v1alpha1.DefaultGate))
	s.sandbox(pod, "127.0.12.6", longAgo())
	binding := admission.ReservedGatesBinding() // for this namespace: other tests open gates by hand
	binding.Spec.MatchResources = admission.ReservedGates().Spec.MatchConstraints.DeepCopy()
	binding.Spec.MatchResources.NamespaceSelector = &metav1.LabelSelector{MatchLabels: s.labels()}
	s.Create(t, admission.ReservedGates())
	s.Create(t, binding)
	const onlyGate, onlyLatch, note, labels = "only Readygate may set the reserved gates ", "only Readygate may open the latch", "must not be changed or removed", "must not be changed through pods/status"
	open := opening(gate, "True", v1alpha1.ReasonAllReady, "open 127.0.12.6 boot 2026-11-16T10:00:00Z")
	status := func(kind, status string) string {
		return fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": %q}]}}`, kind, status)
	}
	other := s.plugin()
	testenv.Eventually(t, "the policy to act", func(ctx context.Context) error {
		if err := try(ctx, other, pod, open); !refusedBy(err, admission.ReservedGatesName, onlyGate+gate) {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
	for who, as := range map[string]client.Client{"the plugin": other, "the kubelet": s.As(t, "system:node:"+s.id, "system:nodes"), "an administrator": s.Client} {
		for name, tc := range map[string]struct {
			pod            *corev1.Pod
			patch, refusal string
		}{
			"True":                       {pod, status(gate, "True"), onlyGate},
			"True with a reason of ours": {pod, open, onlyGate},
			"False":                      {pod, status(gate, "False"), ""},
			"Unknown":                    {pod, status(gate, "Unknown"), ""},
			"a condition of its own":     {pod, status(programmed, "True"), ""},
			"Ready":                      {pod, status("Ready", "True"), ""},
			"the latch":                  {pod, fmt.Sprintf(`{"metadata": {"annotations": {%q: "always ByHand"}}}`, v1alpha1.LatchAnnotation), onlyLatch},
			"the list of gates":          {pod, fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, v1alpha1.GatesAnnotation), note},
			"a pod without a rule":       {free, status(v1alpha1.DefaultGate, "True"), ""},
		} {
			wantAnswer(t, who+": "+name, try(t.Context(), as, tc.pod, tc.patch), admission.ReservedGatesName, tc.refusal)
		}
	}
	optOut := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, v1alpha1.OptOutLabel, v1alpha1.OptOut)
	wantAnswer(t, "the plugin: the label that opts out", try(t.Context(), other, pod, optOut), admission.ReservedGatesName, labels)
	wantAnswer(t, "the plugin: a label of a pod without a rule", try(t.Context(), other, free, optOut), admission.ReservedGatesName, "")
	wantAnswer(t, "the agent: True", try(t.Context(), clientOf(t, s.identity(s.id)), pod, open), admission.ReservedGatesName, "")
	wantAnswer(t, "the manager: True", try(t.Context(), s.As(t, testenv.ManagerUser), pod, opening(gate, "True", v1alpha1.ReasonAgentGone, "always AgentGone")), admission.ReservedGatesName, "")

	s.startAgent()
	s.says(pod, corev1.ConditionTrue)
	s.wantGate(pod, gate, allReady)
	wantAnswer(t, "the kubelet: Ready of an open pod", try(t.Context(), s.As(t, "system:node:"+s.id, "system:nodes"), pod, status("Ready", "True")), admission.ReservedGatesName, "")
	wantAnswer(t, "the plugin: False of an open pod", try(t.Context(), other, pod, status(gate, "False")), admission.ReservedGatesName, "")
}
