package cni_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The test binary has three parts to play beside the tests: the plugin "fake"; a process that
// runs one canary, to be killed; and, as root on Linux, a machine of its own around the tests.
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

// canaryEnv holds the canary, as JSON, that a process of its own is to run.
const canaryEnv = "READYGATE_TEST_CANARY"
