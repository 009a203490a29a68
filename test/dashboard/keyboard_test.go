package dashboard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

// focused is the name of the focused tile, or the id of another focused element.
const focused = `(document.activeElement.dataset.name ?? document.activeElement.id)`

func (p *opened) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

func (p *opened) focusIs(want string) {
	p.t.Helper()
	if got := value[string](p, focused); got != want {
		p.t.Errorf("%q has the focus, want %q", got, want)
	}
}

func TestThePageCanBeUsedWithTheKeyboardAlone(t *testing.T) {
	fleet, _ := crowd(100)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	reached := false
	for range 40 { // Tab reaches the tiles, and all tiles are one stop
		p.press(kb.Tab)
		if value[string](p, focused) == "worker-1" {
			reached = true
			break
		}
	}
	if !reached {
		t.Fatal("Tab does not reach the first tile")
	}
	columns := value[int](p, `getComputedStyle(document.getElementById("tiles")).gridTemplateColumns.split(" ").length`)
	p.press(kb.ArrowRight, kb.ArrowRight, kb.ArrowLeft)
	p.focusIs("worker-2")
	p.press(kb.ArrowDown)
	p.focusIs(fmt.Sprintf("worker-%d", 2+columns))
	p.press(kb.ArrowUp, kb.ArrowUp)
	p.focusIs("worker-2")
	p.press(kb.End)
	p.focusIs("worker-100")
	p.press(kb.ArrowRight)
	p.focusIs("worker-100")
	p.press(kb.Home)
	p.focusIs("worker-1")
	if stops := value[int](p, `document.querySelectorAll("#tiles > [tabindex='0']").length`); stops != 1 {
		t.Errorf("%d tiles are stops of Tab, want one", stops)
	}

	p.press(kb.Enter)
	p.until("the explanation", panel+`.open && `+panel+`.querySelector(".headline")`)
	p.focusIs("panel-heading")
	p.press(kb.Escape)
	p.until("the panel to close", `!`+panel+`.open`)
	p.focusIs("worker-1")

	p.press("\t")
	if value[bool](p, `document.activeElement.parentElement.id === "tiles"`) {
		t.Error("Tab stays among the tiles")
	}
}

func TestFiltersShowOnlyMatchingNodes(t *testing.T) {
	fleet, _ := crowd(100)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	shown := `[...document.querySelectorAll("#tiles > button")].filter((tile) => tile.checkVisibility()).length`
	is := func(what string, want int) {
		t.Helper()
		p.until(what, fmt.Sprintf("%s === %d", shown, want))
	}
	is("all", 100)
	p.run(`document.querySelector(".number[data-state=Held]").click()`)
	is("held ones", 10)
	p.run(`document.querySelector(".number[data-state=Held]").click()`)
	p.run(`document.getElementById("search").focus()`)
	p.press(strings.Split("worker-9", "")...)
	is("worker-9 and worker-90 to 99", 11)
	p.run(`document.querySelector(".number[data-state=Held]").click()`)
	is("worker-91 of them", 1)
	fleet.Put(joined("worker-999", time.Now()).held("network").Node)
	is("and a new one that matches", 2)
	p.run(`document.getElementById("search").value = "not reported"; document.getElementById("search").dispatchEvent(new Event("input"))`)
	is("those where something is not reported", 11)
	p.run(`document.getElementById("search").value = ""; document.getElementById("search").dispatchEvent(new Event("input"))`)
	p.run(`document.querySelector(".number[data-state=NotSelected]").click()`)
	is("none", 0)
	p.until("the empty text", `document.getElementById("nothing").checkVisibility() && document.getElementById("nothing").textContent === "No node matches the filter."`)

	fleet.Put(joined("alone", time.Now()).Node)
	is("the one that no rule selects", 1)
	p.run(`document.querySelector(".number[data-state=NotSelected]").click(); document.querySelector("[data-rule=network]").click()`)
	is("those of the rule", 101)
	p.until("the heading to name it", `[...document.querySelectorAll("[data-chosen]")].every((chosen) => chosen.textContent === "network")`)
	p.run(`document.getElementById("no-rule").click()`)
	is("all again", 102)
}

func TestPageIsUsableWithAScreenReader(t *testing.T) {
	fleet, _ := crowd(20)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	p.until("the distribution", `document.getElementById("times-table").children.length === 15`)
	p.run(tile("worker-1") + ".click()")
	p.until("the explanation", panel+`.querySelector(".headline")`)
	tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		return strings.Trim(string(v.Value), `"`)
	}
	var found []string
	for _, n := range tree.Nodes {
		if !n.Ignored {
			found = append(found, text(n.Role)+": "+text(n.Name))
			if role := text(n.Role); (role == "button" || role == "searchbox" || role == "img" || role == "dialog") && text(n.Name) == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for _, want := range []string{
		"heading: Readygate", "main: ", "region: Nodes", "group: Nodes", "button: worker-1, held", "button: worker-2, released", "button: 2 held", "button: 18 released",
		"searchbox: Filter by name, rule or missing requirement", "region: Rules", "region: Time to readiness", "table: Nodes by time to readiness",
		"region: Over time", "image: most held: 2 at", "dialog: worker-1", "heading: What to do", "button: Close", "status: ", "link: Skip to the nodes",
	} {
		if !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("nothing is %q", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(found, "\n"))
	}
}
