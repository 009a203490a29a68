package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/chromedp/chromedp/kb"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
)

// gated is a pod that carries the gate of the pod network, and has had its sandbox for some minutes. Its
// agent has set the gate to the status.
func gated(name string, minutes int, status corev1.ConditionStatus, message string) *corev1.Pod {
	since := metav1.NewTime(time.Now().Add(-time.Duration(minutes) * time.Minute).Truncate(time.Second))
	reason, annotations := podv1alpha1.ReasonWaiting, map[string]string{podv1alpha1.GatesAnnotation: podv1alpha1.DefaultGate}
	if status == corev1.ConditionTrue {
		reason, annotations[podv1alpha1.LatchAnnotation] = podv1alpha1.ReasonAllReady, "open 10.0.0.7 - "+since.UTC().Format(time.RFC3339)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: since, Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: "worker-1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.7", Conditions: []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: since},
			{Type: podv1alpha1.DefaultGate, Status: status, Reason: reason, Message: message, LastTransitionTime: since},
		}},
	}
}

// podRule is a rule for all pods with a deadline of ten minutes.
func podRule() *podv1alpha1.PodReadinessRule {
	return &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-network", UID: "uid-pod-network"},
		Spec: podv1alpha1.PodReadinessRuleSpec{
			DeadlineSeconds: ptr.To[int32](600),
			Components:      []podv1alpha1.Component{{Name: "policy", PodCondition: &podv1alpha1.ConditionComponent{Type: "policy.example.com/programmed"}}},
		},
	}
}

const podRows = `[...document.querySelectorAll("#pods-table tr")]`

func TestPodsThatWaitAreShown(t *testing.T) {
	fleet := live.NewFleet(time.Now)
	fleet.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, joined("worker-1", time.Now()).Node)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	card := `document.getElementById("pods")`
	if value[bool](p, card+`.checkVisibility()`) {
		t.Error("a cluster without PodReadinessRules has a table of pods")
	}

	fleet.Put(podRule())
	p.until("the table to be there", card+`.checkVisibility() && `+card+`.innerText.includes("No pod waits for its network.")`)
	const waiting = "waiting for policy (the pod has no condition policy.example.com/programmed)"
	fleet.Put(gated("web-1", 3, corev1.ConditionFalse, waiting), gated("web-2", 30, corev1.ConditionFalse, waiting+bomb), gated("web-3", 5, corev1.ConditionTrue, ""))
	p.until("those that wait, longest first", podRows+`.map((row) => row.querySelector("button").dataset.pod).join() === "shop/web-2,shop/web-1"`)
	text := value[string](p, card+".innerText")
	for _, want := range []string{"2 pods, 1 late", "shop/web-1", "3m", "policy (the pod has no condition policy.example.com/programmed)", "worker-1", podv1alpha1.DefaultGate, "30m"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if late := value[int](p, podRows+`.filter((row) => row.querySelector(".badge").checkVisibility()).length`); late != 1 {
		t.Errorf("%d of 2 are marked late, want 1", late)
	}

	p.run(`document.getElementById("search").value = "web-1"; document.getElementById("search").dispatchEvent(new Event("input"))`)
	p.until("the one that is asked for", podRows+".length === 1")
	p.run(`document.getElementById("search").value = ""; document.getElementById("search").dispatchEvent(new Event("input"))`)
	p.until("both again", podRows+".length === 2")

	p.run(`document.querySelector("[data-pod='shop/web-1']").click()`)
	p.until("the explanation", panel+`.open && `+panel+`.querySelector(".headline")?.textContent.includes("shop/web-1 has waited 3m")`)
	explanation := strings.ToLower(value[string](p, panel+".innerText"))
	for _, want := range []string{"what to do", "component policy is not ready", "this gate is closed for 3m", "rule pod-network", "policy, pod condition policy.example.com/programmed", "on node worker-1"} {
		if !strings.Contains(explanation, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, explanation)
		}
	}
	p.press(kb.Escape)
	p.until("the panel to close", `!`+panel+`.open`)
	if got := value[string](p, `document.activeElement.dataset.pod`); got != "shop/web-1" {
		t.Errorf("%q has the focus", got)
	}

	fleet.Put(gated("web-1", 3, corev1.ConditionTrue, ""))
	p.until("a gate that opens", podRows+`.length === 1`)
	if value[bool](p, `"hacked" in window`) {
		t.Error("a text was run")
	}
}

func TestLongListOfPodsThatWaitIsCut(t *testing.T) {
	fleet := live.NewFleet(time.Now)
	fleet.Put(podRule(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for i := range 250 {
		fleet.Put(gated(fmt.Sprintf("web-%03d", i), 1, corev1.ConditionFalse, "waiting for policy"))
	}
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	p.until("the first of them", podRows+`.length === 200 && document.getElementById("no-pods").textContent === "… and 50 more"`)
}
