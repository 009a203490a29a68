package dashboard_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/testenv"
)

// prefers emulates a preference of the user.
func prefers(feature, value string) action {
	return send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

// picture writes a screenshot into the docs.
func (p *opened) picture(name string) {
	p.t.Helper()
	data, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(testenv.Root(), "docs", name), data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// This test writes the screenshots of the docs, if UPDATE_SCREENSHOTS is set. History is recorded once per second, so the
// test takes as many seconds as the scene has steps.
func TestPictures(t *testing.T) {
	if os.Getenv("UPDATE_SCREENSHOTS") == "" {
		t.Skip("UPDATE_SCREENSHOTS=1 updates the screenshots of the docs")
	}
	const steps = 55
	s := newScene()
	url := serve(t, dashboard.Options{Fleet: s.fleet, Explanation: s.explanation, Now: s.now, Title: "production / eu-central"})
	for range steps {
		s.advance(lasting / steps)
		<-time.After(time.Second)
	}
	light := open(t, url, 1280, 800, prefers("prefers-color-scheme", "light"))
	light.run(tile("gpu-23") + ".click()")
	light.until("the explanation", panel+`.querySelector(".headline")`)
	light.picture("dashboard-light.png")

	dark := open(t, url, 1280, 800, prefers("prefers-color-scheme", "dark"))
	dark.until("the distribution", `document.getElementById("times-table").children.length === 15`)
	dark.picture("dashboard-dark.png")

	if dir := os.Getenv("SCREENSHOTS"); dir != "" { // to look at, not to keep
		small := open(t, url, 400, 800)
		data, err := chromedp.Run(small.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		_ = os.WriteFile(filepath.Join(dir, "small.png"), data, 0o644)
	}
}
