// Package dashboard tests the page in a real browser: against a real API server and manager,
// and with fleets that are fed by hand where numbers or hostile names matter.
//
// Without a Chromium the tests are skipped, unless READYGATE_BROWSER=required.
package dashboard_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

var shared struct {
	start    sync.Once
	cluster  *testenv.Cluster
	stop     func() error
	startErr error
}

func TestMain(m *testing.M) {
	testenv.Quiet()
	code := m.Run()
	browser.close()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			code = 1
		}
	}
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	testenv.CleanUp()
	os.Exit(code)
}

// cluster is the control plane that tests share, with a manager running in this process.
func cluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	shared.start.Do(func() {
		shared.cluster, shared.startErr = testenv.NewCluster(context.Background())
		if shared.startErr == nil {
			shared.startErr = shared.cluster.InstallPolicies(context.Background())
		}
		if shared.startErr == nil {
			_, shared.stop, shared.startErr = shared.cluster.RunManager()
		}
	})
	if shared.startErr != nil {
		t.Fatalf("starting a control plane: %v", shared.startErr)
	}
	return shared.cluster
}
