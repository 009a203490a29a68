package dashboard_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the browser that all tests share. Each test has a profile of its own in it.
type chromium struct {
	start sync.Once
	ctx   context.Context
	end   []context.CancelFunc
	err   error
}

var browser chromium

// binary returns the path of the browser: READYGATE_CHROMIUM, else the first one on PATH.
func binary() (string, error) {
	if path := os.Getenv("READYGATE_CHROMIUM"); path != "" {
		return exec.LookPath(path)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium on PATH: hack/browser installs one, or set READYGATE_CHROMIUM")
}

func (b *chromium) launch(path string) {
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", false))
	if os.Getuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // it has none for root
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, end := chromedp.NewContext(allocator)
	b.ctx, b.end = ctx, []context.CancelFunc{end, endAllocator}
	b.err = chromedp.Do(ctx)
}

func (b *chromium) close() {
	for _, end := range b.end {
		end()
	}
}

// tab is a new tab with an empty profile. It is closed when the test ends.
func tab(t *testing.T) context.Context {
	t.Helper()
	path, err := binary()
	if err != nil {
		if os.Getenv("READYGATE_BROWSER") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	browser.start.Do(func() { browser.launch(path) })
	if browser.err != nil {
		t.Fatalf("starting %s: %v", path, browser.err)
	}
	ctx, end := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	return ctx
}
