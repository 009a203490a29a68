package dashboard_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
)

const storage = "example.com/StorageReady"

// guarded is a fleet of four nodes: worker-1 is stuck, worker-2 is released, worker-3 is limited,
// and worker-4 waits until its requirements have been met for an hour.
func guarded() *live.Fleet {
	now := time.Now()
	limited := joined("worker-3", now.Add(-time.Hour)).says(network, corev1.ConditionFalse, "NoRoute", "", now.Add(-time.Minute))
	limited.Labels["network"] = "yes"
	fleet := live.NewFleet(time.Now)
	fleet.Put(
		made("network", network, now.Add(-2*time.Hour), func(r *v1alpha1.NodeReadinessRule) {
			r.Spec.ProgressDeadlineSeconds, r.Spec.MaxUnavailable = ptr.To[int32](60), ptr.To(intstr.FromInt32(0))
			r.Status.LimitedNodes = []string{"worker-3"}
			enforced := &r.Status.Conditions[1]
			enforced.Status, enforced.Reason, enforced.Message = metav1.ConditionFalse, v1alpha1.ReasonLimited, "1 node stays released although its requirements are unmet"
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionReportersTolerated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDaemonSetBlocked, Message: "DaemonSet a/b never starts on a held node",
			})
		}),
		made("storage", storage, now.Add(-2*time.Hour), func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = 3600 }),
		joined("worker-1", now.Add(-time.Hour)).held("network").Node,
		joined("worker-2", now.Add(-time.Hour)).released("network", network, time.Minute).Node,
		limited.Node,
		joined("worker-4", now.Add(-time.Hour)).held("storage").says(storage, corev1.ConditionTrue, "Healthy", "", now.Add(-time.Minute)).Node)
	return fleet
}

func TestStuckAndLimitedNodesHaveDistinctTiles(t *testing.T) {
	p := open(t, serve(t, dashboard.Options{Fleet: guarded()}), 1280, 800)
	p.until("the tiles", `document.querySelectorAll("#tiles > button").length === 4`)
	for name, want := range map[string]string{
		"worker-1": "worker-1, held, stuck", "worker-2": "worker-2, released", "worker-3": "worker-3, released, limited", "worker-4": "worker-4, held",
	} {
		if got := value[string](p, tile(name)+`.getAttribute("aria-label")`); got != want {
			t.Errorf("the tile is called %q, want %q", got, want)
		}
	}

	// Each state has a shape of its own, not only a colour.
	for density, part := range map[string]string{"large": "::before", "medium": "", "tiny": ""} {
		p.run(`document.getElementById("tiles").dataset.density = "` + density + `"`)
		shapes := map[string]string{}
		for _, name := range []string{"worker-1", "worker-2", "worker-3", "worker-4"} {
			shape := value[string](p, `getComputedStyle(`+tile(name)+`, "`+part+`").backgroundImage.replaceAll(/(rgba?|color|oklch)\([^)]*\)/g, "colour")`)
			if other, taken := shapes[shape]; taken {
				t.Errorf("%s: %s looks like %s, but for colours: %s", density, name, other, shape)
			}
			shapes[shape] = name
		}
	}
	if marks := value[int](p, `document.querySelectorAll(".help [data-stuck], .help [data-limited]").length`); marks != 2 {
		t.Errorf("the legend has %d of 2 marks", marks)
	}

	text := value[string](p, `document.querySelector(".numbers").innerText + document.querySelector("[data-rule=network]").innerText`)
	for _, want := range []string{"1 stuck", "1 limited", "1 held · 1 stuck · 2 released · 1 limited", "Limited", "1 node stays released although its requirements are unmet", "DaemonSet a/b never starts on a held node"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	p.run(`document.getElementById("search").value = "stuck"; document.getElementById("search").dispatchEvent(new Event("input"))`)
	p.until("the stuck node alone", `[...document.querySelectorAll("#tiles > button")].filter((tile) => tile.checkVisibility()).map((tile) => tile.dataset.name).join() === "worker-1"`)
}

func TestExplanationNamesTheActiveSafetyField(t *testing.T) {
	p := open(t, serve(t, dashboard.Options{Fleet: guarded()}), 1280, 800)
	for name, wants := range map[string][]string{
		"worker-1": {"stuck", "held for longer than the rule's progressdeadlineseconds"},
		"worker-3": {"limited", "would hold this node, but leaves it released", "maxunavailable (0) is reached"},
		"worker-4": {"(minreadyseconds)", "if its requirements remain met, the node is released at "},
	} {
		p.run(tile(name) + ".click()")
		p.until("the explanation of "+name, `document.getElementById("panel-heading").textContent === "`+name+`" && `+panel+`.querySelector(".chapter")`)
		text := strings.ToLower(value[string](p, panel+".innerText"))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("the explanation of %s lacks %q:\n%s", name, want, text)
			}
		}
		if name == "worker-4" {
			p.until("the time to count down", `/^in (60|59)m$/.test(`+panel+`.querySelector("time[data-until]").textContent)`)
		}
	}
}
