package live_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/live"
)

// Pods have their sandbox for a minute at noon.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// gateRule is a rule for pods of namespaces with the label gate: "on".
func gateRule() *podv1alpha1.PodReadinessRule {
	return &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: "network", UID: "uid-network"},
		Spec: podv1alpha1.PodReadinessRuleSpec{
			NamespaceSelector: &podv1alpha1.LabelSelector{MatchLabels: map[string]podv1alpha1.LabelValue{"gate": "on"}},
			Components:        []podv1alpha1.Component{{Name: "policy", PodCondition: &podv1alpha1.ConditionComponent{Type: "a.b/programmed"}}},
		},
	}
}

func shop(gate string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop", "gate": gate}}}
}

// gatedPod carries the gate, which its agent has set to the status.
func gatedPod(name string, status corev1.ConditionStatus) *corev1.Pod {
	reason, annotations := podv1alpha1.ReasonWaiting, map[string]string{podv1alpha1.GatesAnnotation: podv1alpha1.DefaultGate}
	if status == corev1.ConditionTrue {
		reason, annotations[podv1alpha1.LatchAnnotation] = podv1alpha1.ReasonAllReady, "open 10.0.0.7 - "+noon.Add(-time.Minute).Format(time.RFC3339)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: "w-1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.7", Conditions: []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))},
			{Type: podv1alpha1.DefaultGate, Status: status, Reason: reason, Message: "waiting for policy", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))},
		}},
	}
}

// podsIn returns the pods of a delta that wait, and those that no longer wait.
func podsIn(d live.Delta) []string {
	var all []string
	for _, p := range d.Gated {
		all = append(all, p.Key()+" waits for "+p.Gates[0].For)
	}
	for _, key := range d.Ungated {
		all = append(all, key+" does not wait")
	}
	return all
}

func TestFleetListsPodsThatWait(t *testing.T) {
	fleet := live.NewFleet(atNoon)
	fleet.Put(gateRule(), shop("on"), gatedPod("waits", corev1.ConditionFalse), gatedPod("open", corev1.ConditionTrue))
	follower, before := fleet.Follow()
	defer follower.Stop()
	if before.PodRules != 1 || len(before.Gated) != 1 || before.Gated[0].Key() != "shop/waits" || before.Gated[0].Gates[0].For != "policy" {
		t.Fatalf("before: %+v", before.Gated)
	}
	expect := func(what string, want ...string) {
		t.Helper()
		<-follower.Changed()
		if got := podsIn(follower.Take()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	fleet.Put(gatedPod("second", corev1.ConditionFalse))
	expect("a new pod", "shop/second waits for policy")
	fleet.Put(gatedPod("waits", corev1.ConditionTrue))
	expect("a gate that opens", "shop/waits does not wait")
	fleet.Put(shop("off"))
	expect("a namespace that is no longer selected", "shop/second waits for its gate to be opened: no PodReadinessRule selects the pod anymore")
	fleet.Put(shop("on"))
	expect("and selected again", "shop/second waits for policy")
	fleet.Drop(gatedPod("second", corev1.ConditionFalse))
	expect("a pod that goes", "shop/second does not wait")
	if after := fleet.Snapshot(); len(after.Gated) != 0 {
		t.Errorf("after: %+v", after.Gated)
	}

	fleet.Drop(gateRule())
	<-follower.Changed()
	if delta := follower.Take(); delta.PodRules == nil || *delta.PodRules != 0 || delta.Rules != nil {
		t.Errorf("a rule that goes: %+v", delta)
	}
}

// The status of a rule is written often, and does not change the rows of pods.
func TestStatusOfAPodRuleCausesNoChange(t *testing.T) {
	fleet := live.NewFleet(atNoon)
	fleet.Put(gateRule(), shop("on"), gatedPod("waits", corev1.ConditionFalse))
	follower, _ := fleet.Follow()
	defer follower.Stop()
	counted := gateRule()
	counted.Status.Summary = &podv1alpha1.PodSummary{Waiting: 1}
	fleet.Put(counted, gatedPod("open", corev1.ConditionTrue))
	select {
	case <-follower.Changed():
		t.Errorf("got %+v", follower.Take())
	default:
	}
}

func TestFleetExplainsAPodThatWaits(t *testing.T) {
	fleet := live.NewFleet(atNoon)
	fleet.Put(gateRule(), shop("on"), gatedPod("waits", corev1.ConditionFalse), gatedPod("open", corev1.ConditionTrue))
	explanation, err := fleet.PodExplanation(t.Context(), "shop", "waits")
	if err != nil || !strings.Contains(explanation.Headline, "shop/waits has waited 60s for policy") || len(explanation.Chapters) != 1 {
		t.Errorf("%v: %+v", err, explanation)
	}
	if _, err := fleet.PodExplanation(t.Context(), "shop", "open"); !apierrors.IsNotFound(err) {
		t.Error("the explanation of a pod that does not wait was returned")
	}
}
