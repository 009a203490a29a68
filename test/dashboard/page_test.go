package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/testenv"
)

// serve serves a dashboard until the test ends, and returns its address.
func serve(t *testing.T, options dashboard.Options) string {
	t.Helper()
	listener, err := dashboard.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, dashboard.New(options))
}

func serveOn(t *testing.T, listener net.Listener, server *dashboard.Server) string {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return "http://" + listener.Addr().String() + "/"
}

type action = chromedp.Action[chromedp.Void]

// opened is a page in a tab. Console errors and warnings fail the test.
type opened struct {
	t   *testing.T
	ctx context.Context

	console   <-chan chromedp.ConsoleMessage
	tolerated []string
}

// open loads the page in a window of this size, and waits until it shows the fleet.
func open(t *testing.T, url string, width, height int64, before ...action) *opened {
	t.Helper()
	p := &opened{t: t, ctx: tab(t)}
	console := make(chan chromedp.ConsoleMessage, 10000)
	p.console = console
	messages := chromedp.Console(p.ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			console <- message
		}
	}()
	t.Cleanup(p.quiet)
	p.do(chromedp.EmulateViewport(width, height))
	p.do(before...)
	p.do(chromedp.Navigate(url))
	p.until("the page to be live", `document.getElementById("connection").dataset.state === "live"`)
	return p
}

// send is a command of the browser's protocol.
func send[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// tolerate names console messages that the test provokes.
func (p *opened) tolerate(texts ...string) { p.tolerated = append(p.tolerated, texts...) }

// quiet fails the test for console errors, exceptions, and violations of the content security policy.
func (p *opened) quiet() {
	const last = "this is the end of the test"
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](`console.log("`+last+`")`)); err != nil {
		p.t.Errorf("reading the console: %v", err)
		return
	}
	for message := range p.console {
		if message.Text == last {
			return
		}
		tolerated := slices.ContainsFunc(p.tolerated, func(text string) bool { return strings.Contains(message.Text, text) })
		if bad := message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleWarning || message.IsException(); bad && !tolerated {
			p.t.Errorf("console message: %s (%s)", message, message.URL)
		}
	}
}

func (p *opened) do(actions ...action) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

// run runs statements in the page.
func (p *opened) run(statements string) {
	p.t.Helper()
	value[bool](p, "(() => { "+statements+"; return true; })()")
}

// value evaluates an expression in the page.
func value[T any](p *opened, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true in the page.
func (p *opened) until(what, expression string) {
	p.t.Helper()
	testenv.Eventually(p.t, what, func(context.Context) error {
		so, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil {
			return err
		}
		if !so {
			return fmt.Errorf("not true: %s", expression)
		}
		return nil
	})
}

// tile is the tile of a node, as an expression.
func tile(name string) string {
	quoted, _ := json.Marshal(name)
	return fmt.Sprintf("[...document.querySelectorAll('#tiles > button')].find((tile) => tile.dataset.name === %s)", quoted)
}

const panel = `document.getElementById("panel")`
