package reporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Validation does not depend on the environment: a configuration may name Services that do not exist.
func TestValidateNeedsNoCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := strings.Replace(Example, "http:\n    url: http://localhost:9099/readiness", "peers: {ready: network-reporter, everyone: network-reporter-all}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := validate(Environment{}, file, false); err != nil {
		t.Error(err)
	}
	if err := validate(Environment{}, "", false); err == nil || !strings.Contains(err.Error(), "no check configured") {
		t.Errorf("of nothing it says %v", err)
	}
}

func TestAFileAndVariablesExcludeEachOther(t *testing.T) {
	o := &Options{Config: "config.yaml"}
	for _, name := range []string{"CONDITION_TYPE", "CHECK_ENDPOINT", "CHECK_INTERVAL", "CHECK_TIMEOUT"} {
		err := o.exclusive(func(asked string) string { return map[string]string{name: "x"}[asked] })
		if want := "--config=config.yaml and " + name + " are both set: remove one of them"; err == nil || err.Error() != want {
			t.Errorf("it says %v, want %s", err, want)
		}
	}
	if err := o.exclusive(func(string) string { return "" }); err != nil {
		t.Error(err)
	}
}

// Outside a pod the reporter uses the same kubeconfig as kubectl; in a pod it does not.
func TestKubeconfigOfTheUserIsUsedOnlyOutsideOfPods(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := (&Options{}).connection(); err == nil || !strings.Contains(err.Error(), os.Getenv("KUBECONFIG")) {
		t.Errorf("outside it says %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if _, err := (&Options{}).connection(); err != nil && strings.Contains(err.Error(), os.Getenv("KUBECONFIG")) {
		t.Errorf("in a pod it says %v", err)
	}
}
