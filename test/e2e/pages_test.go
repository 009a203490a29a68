package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// The commands of the pages for installing, upgrading and uninstalling run as written, in this order.
func TestInstallUpgradeAndUninstallAsWritten(t *testing.T) {
	l := lab.Start(t)
	l.JoinThree(t)
	l.InstallFlannel(t)
	l.EventuallyNodes(t, "ready", is(string(corev1.NodeReady), corev1.ConditionTrue), "n1", "n2", "n3")
	dir := checkout(t)
	for _, page := range []string{"install", "upgrade", "uninstall"} {
		for _, block := range testenv.PageCommands(t, "docs/how-to/"+page+".md", page) {
			runBlock(t, l, dir, block)
		}
		l.Step(t, page+" as written")
	}
	nothingIsLeft(t, l)
}

// checkout returns an empty directory with the charts of the repository, in which the commands of users write their files.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(testenv.Root(), "charts"), filepath.Join(dir, "charts")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runBlock runs commands of a page in a directory, until one fails. The nodes of the lab pull images of all
// registries from that of the lab.
func runBlock(t *testing.T, l *lab.Lab, dir, commands string) {
	t.Helper()
	t.Log(commands + "\n" + l.Kubectl.Script(t, dir, "-ec", "export PATH="+filepath.Join(testenv.Root(), "bin", "chart")+":$PATH\n"+commands))
}
