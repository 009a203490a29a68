package dashboard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
)

const network = "example.com/NetworkReady"

// crowd returns a fleet of this size. Every tenth node is held.
func crowd(size int) (*live.Fleet, []machine) {
	start := time.Now().Add(-time.Hour)
	machines := make([]machine, size)
	for i := range machines {
		machines[i] = joined(fmt.Sprintf("worker-%d", i+1), start)
		if i%10 == 0 {
			machines[i].held("network")
		} else {
			machines[i].released("network", network, time.Duration(i%90)*time.Second)
		}
	}
	fleet := live.NewFleet(time.Now)
	fleet.Put(objects(machines)...)
	fleet.Put(made("network", network, start.Add(-time.Hour)))
	return fleet, machines
}

// spent returns the time that the browser has spent on the page so far, in seconds.
func (p *opened) spent() map[string]float64 {
	p.t.Helper()
	metrics, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	spent := map[string]float64{}
	for _, m := range metrics.Metrics {
		spent[m.Name] = m.Value
	}
	return spent
}

func (p *opened) logSpent(what string, before, after map[string]float64) {
	p.t.Logf("%s: scripting %.0f ms, layout %.0f ms, style %.0f ms, all tasks %.0f ms, %.0f DOM nodes, heap %.1f MiB", what,
		1000*(after["ScriptDuration"]-before["ScriptDuration"]), 1000*(after["LayoutDuration"]-before["LayoutDuration"]),
		1000*(after["RecalcStyleDuration"]-before["RecalcStyleDuration"]), 1000*(after["TaskDuration"]-before["TaskDuration"]),
		after["Nodes"], after["JSHeapUsedSize"]/(1<<20))
}

// Times are logged only. The test asserts the numbers of changed elements, which keep them small.
func TestFiveThousandNodesStaySmooth(t *testing.T) {
	fleet, machines := crowd(5000)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800, send(performance.Enable, performance.EnableParams{}))
	p.until("5,000 tiles", `document.querySelectorAll("#tiles > button").length === 5000`)
	if held := value[string](p, `document.querySelector("[data-count=Held]").textContent`); held != "500" {
		t.Errorf("%s held, want 500", held)
	}
	loaded := p.spent()
	p.logSpent("load", map[string]float64{}, loaded)

	p.run(`
		window.touched = new Set(); window.added = 0; window.records = 0;
		new MutationObserver((records) => { for (const r of records) {
			window.records++; window.added += r.addedNodes.length + r.removedNodes.length;
			if (r.target.dataset.name) window.touched.add(r.target.dataset.name);
		} }).observe(document.getElementById("tiles"), { subtree: true, childList: true, attributes: true, characterData: true });
	`)
	for i := range 500 { // one by one: that a burst is few messages is the server's job
		fleet.Put(joined(machines[10*i].Name, machines[10*i].CreationTimestamp.Time).released("network", network, time.Minute).Node)
	}
	p.until("the burst to be shown", `document.querySelector("[data-count=Held]").textContent === "0"`)
	p.logSpent("500 changes", loaded, p.spent())

	touched := value[map[string]int](p, `({touched: window.touched.size, added: window.added, records: window.records})`)
	t.Logf("of 5,000 tiles %d were touched, with %d changes of attributes; %d were made or removed", touched["touched"], touched["records"], touched["added"])
	if touched["touched"] != 500 || touched["added"] != 0 {
		t.Errorf("500 changes touched %d tiles, and made or removed %d: want 500 and 0", touched["touched"], touched["added"])
	}
	if touched["records"] > 2*500 {
		t.Errorf("500 changes of state were %d changes of attributes: want a state and a name each", touched["records"])
	}
}

func TestAnIdlePageTouchesNothing(t *testing.T) {
	fleet, machines := crowd(200)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	p.run(`
		window.records = 0;
		new MutationObserver((records) => { window.records += records.length; })
			.observe(document.getElementById("tiles"), { subtree: true, childList: true, attributes: true });
	`)
	heartbeat := machines[3].DeepCopy()
	heartbeat.Status.Conditions[1].LastHeartbeatTime.Time = time.Now()
	fleet.Put(heartbeat, joined("zzz-the-last", time.Now()).Node)
	p.until("the node that joined after the heartbeat", tile("zzz-the-last"))
	if records := value[int](p, "window.records"); records != 1 {
		t.Errorf("a heartbeat and a new node changed the grid %d times, want once: the new tile", records)
	}
}
