package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/readygate/readygate/internal/plugin"
)

// logged returns what the client's log writes to standard error after a command has started.
func logged(t *testing.T, args ...string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = before }()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	if code := plugin.Run(t.Context(), streams, args); code != plugin.ExitFine {
		t.Fatalf("%q ended with %d", args, code)
	}
	klog.ErrorS(nil, "Failed to watch")
	klog.V(2).Info("in detail")
	klog.Flush()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestClientLogsOnlyWithVerbosity(t *testing.T) {
	if got := logged(t, "options"); got != "" {
		t.Errorf("without -v it logs %q", got)
	}
	if got := logged(t, "options", "-v=2"); !strings.Contains(got, "Failed to watch") || !strings.Contains(got, "in detail") {
		t.Errorf("with -v=2 it logs %q", got)
	}
	if got := logged(t, "options"); got != "" {
		t.Errorf("afterwards it logs %q", got)
	}
}
