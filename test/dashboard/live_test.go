package dashboard_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/testenv"
)

// serveCluster serves the page of the cluster, as kubectl readiness ui does.
func serveCluster(t *testing.T, c *testenv.Cluster) string {
	t.Helper()
	source, err := live.NewSource(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := source.Follow(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, dashboard.Options{Fleet: fleet, Title: "test", Explanation: source.Explanation})
}

func TestThePageFollowsARealCluster(t *testing.T) {
	tab(t) // no browser, no cluster
	c, name := cluster(t), testenv.NameOf(t)
	c.CreateNode(t, testenv.Node(name, testenv.Pool(name)), corev1.ConditionFalse)
	c.Create(t, testenv.Rule(name)) // after the node: the manager adds the taint, and records since when
	c.EventuallyNode(t, name, "held", func(n *corev1.Node) bool { return testenv.HasTaint(n, testenv.TaintKey(name)) })
	p := open(t, serveCluster(t, c), 1280, 800)
	p.run("window.loadedOnce = true")

	p.until("the tile of a held node", tile(name)+`?.dataset.state === "Held"`)
	p.until("the rule", `document.querySelector("[data-rule='`+name+`'] .counts").textContent.startsWith("1 held")`)
	p.run(tile(name) + ".click()")
	p.until("its explanation", panel+`.open && `+panel+`.querySelector(".headline")`)
	text := value[string](p, panel+".innerText")
	for _, want := range []string{
		name + " is held for", "by rule " + name, testenv.Condition + " is False, must be True", "Check that component on this node",
		"kubectl get pods -A -o wide --field-selector spec.nodeName=" + name, "This rule holds this node", "since", "TaintAdded",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, text)
		}
	}

	c.SetCondition(t, name, testenv.Condition, corev1.ConditionTrue)
	p.until("the tile to be released", tile(name)+`.dataset.state === "Released"`)
	p.until("the explanation to follow", panel+`.querySelector(".headline").textContent.includes(" is released")`)
	p.until("the announcement for screen readers", `document.getElementById("announcement").textContent === "`+name+` is now released"`)
	p.until("the rule to count it", `document.querySelector("[data-rule='`+name+`'] .counts").textContent.startsWith("0 held · 1 released")`)
	p.until("the distribution", `document.getElementById("times-summary").textContent.includes("median")`)

	if err := c.Client.Delete(t.Context(), testenv.Node(name, nil)); err != nil {
		t.Fatal(err)
	}
	p.until("the tile to be gone", `!`+tile(name))
	p.tolerate("404") // the explanation of a node that is gone
	p.until("the explanation to say so", panel+`.innerText.includes("there is no node")`)
	if !value[bool](p, "window.loadedOnce") {
		t.Error("the page was loaded again")
	}
}

// bomb is text that sets window.hacked if it is executed.
const bomb = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload="window.hacked=1">"'><b>bold</b>`

func TestHostileTextsOfAClusterDoNotExecute(t *testing.T) {
	tab(t)
	c, name := cluster(t), testenv.NameOf(t)
	c.Create(t, testenv.Rule(name))
	node := testenv.Node(name, testenv.Pool(name))
	node.Annotations = map[string]string{"example.com/note": bomb}
	c.Create(t, node)
	base := node.DeepCopy()
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: testenv.Condition, Status: corev1.ConditionFalse, Reason: "Hostile", Message: bomb, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()})
	if err := c.Client.Status().Patch(t.Context(), node, client.StrategicMergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	c.Create(t, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: name, UID: node.UID},
		Source:         corev1.EventSource{Component: "node-readiness-controller"}, Reason: "Hostile", Message: bomb, LastTimestamp: metav1.Now(),
	})
	p := open(t, serveCluster(t, c), 1280, 800)
	p.until("the held node", tile(name)+`?.dataset.state === "Held"`)
	p.run(tile(name) + ".click()")
	p.until("its explanation", panel+`.querySelector(".quote")`)
	p.harmless(bomb)
}

// harmless fails the test if a text was interpreted as markup.
func (p *opened) harmless(text string) {
	p.t.Helper()
	if value[bool](p, `window.hacked !== undefined`) {
		p.t.Error("untrusted text was executed")
	}
	if n := value[int](p, `document.querySelectorAll("main img, .panel img, main script, .panel script, main b, .panel b, svg[onload]").length`); n != 0 {
		p.t.Errorf("%d elements were made from a text", n)
	}
	if !strings.Contains(value[string](p, `document.body.textContent`), text) {
		p.t.Error("the text is not shown as it is")
	}
}

func TestHostileNamesDoNotExecute(t *testing.T) {
	fleet := live.NewFleet(time.Now)
	names := []string{bomb, "../../etc/passwd", "a/b?c=d#e", "%2F..%2F", "constructor", "__proto__", "hasOwnProperty", "\u202Eevil\u2066", strings.Repeat("long", 60)}
	for _, name := range names {
		fleet.Put(joined(name, time.Now()).held("network").says(network, corev1.ConditionFalse, bomb, bomb, time.Now()).Node)
	}
	rule := made("network", network, time.Now())
	rule.Status.Conditions[1].Reason, rule.Status.Conditions[1].Status, rule.Status.Conditions[1].Message = "Refused", metav1.ConditionFalse, bomb
	fleet.Put(rule)
	odd := made("__proto__", bomb, time.Now())
	odd.UID = "uid-odd"
	fleet.Put(odd)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet, Title: bomb}), 1280, 800)
	p.until("a tile for each", `document.querySelectorAll("#tiles > button").length === 9`)
	for _, name := range names {
		p.run(tile(name) + ".click()")
		p.until("the explanation of "+name, panel+`.querySelector(".quote") && document.getElementById("panel-heading").textContent === `+tile(name)+`.dataset.name`)
		p.harmless(bomb)
	}
	if width := value[int](p, "document.documentElement.scrollWidth"); width > 1280 {
		t.Errorf("a long name makes the page %d wide", width)
	}
}
