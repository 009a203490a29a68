package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// InstallFlannel applies flannel's own manifest as it is, but for one setting: nodes have nft,
// and no iptables.
func (l *Lab) InstallFlannel(t *testing.T) {
	t.Helper()
	l.Apply(t, l.FlannelManifest(t))
}

// FlannelManifest is what InstallFlannel applies.
func (l *Lab) FlannelManifest(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(asset("kube-flannel.yml"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.Replace(string(data), `"EnableNFTables": false`, `"EnableNFTables": true`, 1)
	if manifest == string(data) {
		t.Fatal("flannel's manifest no longer has EnableNFTables")
	}
	return manifest
}

// Apply applies a manifest, as kubectl does.
func (l *Lab) Apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	l.Kubectl.Run(t, "apply", "-f", file)
}
