package dashboard_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

func TestALostConnectionIsShownAndComesBack(t *testing.T) {
	fleet, _ := crowd(30)
	listener, err := dashboard.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- dashboard.New(dashboard.Options{Fleet: fleet}).Serve(ctx, listener) }()
	address := listener.Addr().String()
	p := open(t, "http://"+address+"/", 1280, 800)
	p.tolerate("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING")
	p.until("30 tiles", `document.querySelectorAll("#tiles > button").length === 30`)
	p.run(`window.first = document.querySelector("#tiles > button")`)

	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	p.until("the banner", `document.getElementById("banner").checkVisibility() && document.getElementById("banner").textContent.startsWith("Disconnected since ")`)

	fleet.Put(joined("worker-31", time.Now()).held("network").Node)
	fleet.Drop(joined("worker-30", time.Now()).Node)
	again, err := dashboard.Listen(portOf(t, address))
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, again, dashboard.New(dashboard.Options{Fleet: fleet}))
	p.until("the banner to go", `!document.getElementById("banner").checkVisibility()`)
	p.until("what happened meanwhile", `document.querySelectorAll("#tiles > button").length === 30 && `+tile("worker-31"))
	if !value[bool](p, `window.first === document.querySelector("#tiles > button")`) {
		t.Error("tiles were recreated")
	}
}

// While the server has no connection to the cluster, the page must not show Live.
func TestALostClusterIsShownAndComesBack(t *testing.T) {
	fleet, _ := crowd(30)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	p.until("30 tiles", `document.querySelectorAll("#tiles > button").length === 30`)
	banner, state := `document.getElementById("banner")`, `document.getElementById("connection-text").textContent`
	p.until("no banner", `!`+banner+`.checkVisibility() && `+state+` === "Live"`)
	fleet.Disconnected("nodes", bomb, time.Now())
	p.until("the banner", banner+`.checkVisibility() && `+banner+`.textContent.startsWith("The cluster has not responded since ") && `+state+` === "Cluster lost"`)
	p.harmless(bomb)
	fleet.Connected("nodes")
	p.until("the banner to go", `!`+banner+`.checkVisibility() && `+state+` === "Live"`)
}

func TestThemeFollowsTheSystemUntilTheUserChooses(t *testing.T) {
	fleet, _ := crowd(5)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800, prefers("prefers-color-scheme", "dark"))
	ground := `getComputedStyle(document.body).backgroundColor`
	dark := value[string](p, ground)
	p.do(prefers("prefers-color-scheme", "light"))
	light := value[string](p, ground)
	if light == dark {
		t.Fatalf("light and dark are both %s", light)
	}
	p.run(`document.getElementById("theme").click(); document.getElementById("theme").click()`)
	p.until("dark, as chosen", ground+` === "`+dark+`"`)
	p.do(chromedp.Reload())
	p.until("dark, as remembered", ground+` === "`+dark+`"`)
}

func TestThePageFitsAPhone(t *testing.T) {
	fleet, _ := crowd(300)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet, Title: "a rather long name of a cluster in production"}), 400, 800)
	p.until("tiles", `document.querySelectorAll("#tiles > button").length === 300`)
	p.run(tile("worker-1") + ".click()")
	p.until("the explanation", panel+`.querySelector(".headline")`)
	if width := value[int](p, "document.documentElement.scrollWidth"); width > 400 {
		t.Errorf("the page is %d wide", width)
	}
}

// New elements must not move existing ones: users would click on the wrong tile.
func TestUpdatesDoNotShiftTheLayout(t *testing.T) {
	fleet, machines := crowd(300)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	p.until("the distribution", `document.getElementById("times-table").children.length === 15`)
	places := `JSON.stringify([...document.querySelectorAll("main > *, .glance > *, #tiles, #tiles > button")].map((e) => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width] }))`
	before := value[string](p, places)
	for i := range 30 {
		fleet.Put(joined(machines[10*i].Name, machines[10*i].CreationTimestamp.Time).released("network", network, time.Minute).Node)
	}
	p.until("the changes", `document.querySelector("[data-count=Held]").textContent === "0"`)
	p.run(tile("worker-7") + ".click()")
	p.until("the explanation", panel+`.querySelector(".headline")`)
	if after := value[string](p, places); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return int(parsed.Port())
}
