// Package dashboard tests the page in a real browser: against a real API server and manager, and with synthetic fleets
// for large numbers of nodes and hostile names.
//
// Without Chromium the tests are skipped, unless READYGATE_BROWSER=required.
package dashboard_test

import (
	"os"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) {
	code := shared.Main(m)
	browser.close()
	os.Exit(code)
}

// cluster returns the control plane that tests share, with a manager running in this process.
func cluster(t *testing.T) *testenv.Cluster { return shared.Get(t) }
