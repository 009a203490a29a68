package dashboard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

// gateRule is a rule for all pods, with a deadline of two minutes.
func gateRule() *podv1alpha1.PodReadinessRule {
	return &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: "network", UID: "uid-network"},
		Spec: podv1alpha1.PodReadinessRuleSpec{
			DeadlineSeconds: ptr.To[int32](120),
			Components:      []podv1alpha1.Component{{Name: "policy", PodCondition: &podv1alpha1.ConditionComponent{Type: "a.b/programmed"}}},
		},
	}
}

// gatedPod has had its sandbox for a minute at noon. Its gate has the status.
func gatedPod(name string, status corev1.ConditionStatus) *corev1.Pod {
	since := metav1.NewTime(noon.Add(-time.Minute))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{podv1alpha1.GatesAnnotation: podv1alpha1.DefaultGate}},
		Spec:       corev1.PodSpec{NodeName: "w-1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.7", Conditions: []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: since},
			{Type: podv1alpha1.DefaultGate, Status: status, Reason: podv1alpha1.ReasonWaiting, Message: "waiting for policy (no)", LastTransitionTime: since},
		}},
	}
}

func gatedFleet(pods ...*corev1.Pod) *live.Fleet {
	f := live.NewFleet(func() time.Time { return noon })
	f.Put(gateRule(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for _, pod := range pods {
		f.Put(pod)
	}
	return f
}

func TestStreamSendsPodsThatWait(t *testing.T) {
	f := gatedFleet(gatedPod("waits", corev1.ConditionFalse), gatedPod("open", corev1.ConditionTrue))
	p := openPage(t, serve(t, dashboard.New(dashboard.Options{Fleet: f})))
	first := p.next()
	if first.PodRules == nil || *first.PodRules != 1 || len(first.Pods) != 1 {
		t.Fatalf("first: %+v", first)
	}
	want := receivedPod{Namespace: "shop", Name: "waits", Node: "w-1", Gate: podv1alpha1.DefaultGate, For: "policy (no)", Since: noon.Add(-time.Minute).Unix(), Due: noon.Add(time.Minute).Unix()}
	if first.Pods[0] != want {
		t.Errorf("got %+v, want %+v", first.Pods[0], want)
	}

	f.Put(gatedPod("second", corev1.ConditionFalse))
	if m := p.next(); len(m.Pods) != 1 || m.Pods[0].Name != "second" || m.PodRules != nil {
		t.Errorf("a pod more: %+v", m)
	}
	f.Put(gatedPod("waits", corev1.ConditionTrue))
	if m := p.next(); len(m.Pods) != 0 || !slices.Equal(m.PodsGone, []string{"shop/waits"}) {
		t.Errorf("a gate that opens: %+v", m)
	}
	f.Drop(gateRule())
	if m := p.next(); m.PodRules == nil || *m.PodRules != 0 {
		t.Errorf("a rule that goes: %+v", m)
	}
}

func TestPodExplanationIsServedUnchanged(t *testing.T) {
	for _, name := range []string{"web-1", "ä ö?x=1#y", "<img src=x>", "%2F"} {
		asked := ""
		s := dashboard.New(dashboard.Options{Fleet: fleet(), PodExplanation: func(_ context.Context, namespace, name string) (view.PodExplanation, error) {
			asked = namespace + " " + name
			return view.PodExplanation{Headline: "all about " + name}, nil
		}})
		response := get(t, serve(t, s)+"/api/pods/shop/"+url.PathEscape(name)+"/explanation")
		var explanation view.PodExplanation
		if err := json.NewDecoder(response.body).Decode(&explanation); err != nil || asked != "shop "+name || explanation.Headline != "all about "+name {
			t.Errorf("%q: %d, %v, asked for %q, %+v", name, response.code, err, asked, explanation)
		}
	}
}

func TestWithoutASourceTheFleetExplainsAPodThatWaits(t *testing.T) {
	base := serve(t, dashboard.New(dashboard.Options{Fleet: gatedFleet(gatedPod("waits", corev1.ConditionFalse), gatedPod("open", corev1.ConditionTrue)), Now: func() time.Time { return noon }}))
	var explanation view.PodExplanation
	if err := json.NewDecoder(get(t, base+"/api/pods/shop/waits/explanation").body).Decode(&explanation); err != nil || len(explanation.Chapters) != 1 || explanation.Headline != "shop/waits has waited 60s for policy (no)" {
		t.Errorf("%+v, %v", explanation, err)
	}
	response := get(t, base+"/api/pods/shop/open/explanation")
	var answer struct{ Error string }
	if err := json.NewDecoder(response.body).Decode(&answer); err != nil || response.code != http.StatusNotFound || !strings.Contains(answer.Error, "no pod shop/open waits") {
		t.Errorf("%d, %q, %v", response.code, answer.Error, err)
	}
}
