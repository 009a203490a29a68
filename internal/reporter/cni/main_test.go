package cni_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The test binary also runs as: the plugin "fake"; a process that
// runs one canary, to be killed; and, as root on Linux, a scratch host for the tests.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("CNI_COMMAND") != "" && filepath.Base(os.Args[0]) == fakeName:
		os.Exit(fakePlugin())
	case os.Getenv(canaryEnv) != "":
		os.Exit(runCanary(os.Getenv(canaryEnv)))
	default:
		// A process with the race detector lives a second longer, to report; a plugin need not.
		_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
		os.Exit(onScratchHost(m))
	}
}

// canaryEnv contains the canary, as JSON, that a process runs.
const canaryEnv = "READYGATE_TEST_CANARY"
