package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/cni"
)

// Every kind of CNI configuration has a reason.
func TestCNIStatus(t *testing.T) {
	const yes, no = "#!/bin/sh\nexit 0\n", `#!/bin/sh
echo '{"cniVersion": "1.1.0", "code": 50, "msg": "the daemon is not up"}'
exit 1
`
	for name, tc := range map[string]struct {
		config, plugin string
		want           check.Observation
	}{
		"no configuration":         {"", yes, unhealthy("NetworkConfigMissing", "no CNI configuration in ")},
		"not a configuration":      {"{", yes, failed("NetworkConfigWrong", "10-net.conflist in ")},
		"a plugin is missing":      {`{"cniVersion": "1.1.0", "name": "net", "plugins": [{"type": "other"}]}`, yes, failed("NetworkPluginMissing", `plugin "other" of network "net" is not in `)},
		"the plugin says no":       {`{"cniVersion": "1.1.0", "name": "net", "plugins": [{"type": "plugin"}]}`, no, unhealthy("NetworkNotReady", `plugin "plugin" cannot accept pods: the daemon is not up`)},
		"the plugin says yes":      {`{"cniVersion": "1.1.0", "name": "net", "plugins": [{"type": "plugin"}]}`, yes, healthy(check.ReasonNetworkOK, `the plugins of network "net" report that they can accept pods`)},
		"too old to be asked":      {`{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "plugin"}]}`, no, healthy(check.ReasonNetworkOK, `network "net" is configured; its cniVersion 1.0.0 does not support STATUS`)},
		"a plugin that cannot run": {`{"cniVersion": "1.1.0", "name": "net", "plugins": [{"type": "plugin"}]}`, "#!/nonexistent\n", failed("NetworkStatusFailed", "STATUS")},
	} {
		t.Run(name, func(t *testing.T) {
			conf, bin := t.TempDir(), t.TempDir()
			if tc.config != "" {
				write(t, filepath.Join(conf, "10-net.conflist"), tc.config, 0o600)
			}
			write(t, filepath.Join(bin, "plugin"), tc.plugin, 0o700)
			c, err := check.New(check.Spec{CNI: &check.CNI{ConfDir: conf, BinDirs: []string{bin}}}, check.Env{Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			got := c.Run(t.Context())
			if got.Result != tc.want.Result || got.Reason != tc.want.Reason || !strings.HasPrefix(got.Message, tc.want.Message) {
				t.Errorf("it finds %+v, want %+v", got, tc.want)
			}
		})
	}
}

// docs/reference/reporter.md explains the reason of every network failure.
func TestEveryFailureOfTheNetworkIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/reference/reporter.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []cni.Reason{
		cni.NoConfig, cni.BadConfig, cni.PluginMissing, cni.StatusNotReady, cni.StatusFailed, cni.NotConnected, cni.NoAnswer,
		cni.DelFailed, cni.NotPermitted, cni.Busy, cni.BadTarget,
	} {
		if !strings.Contains(string(docs), "`"+string(reason)+"`") {
			t.Errorf("docs/reference/reporter.md does not have %q", reason)
		}
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
