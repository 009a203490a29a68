package reporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A configuration is judged by itself: also one that names Services, where there are none.
func TestValidateNeedsNoCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := strings.Replace(Example, "http:\n    url: http://localhost:9099/readiness", "peers: {ready: network-reporter, everyone: network-reporter-all}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := validate(Environment{}, file, false); err != nil {
		t.Error(err)
	}
	if err := validate(Environment{}, "", false); err == nil || !strings.Contains(err.Error(), "nothing to check") {
		t.Errorf("of nothing it says %v", err)
	}
}
