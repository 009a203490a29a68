// Package views tests that whoever shows the state of a cluster shows the truth: what the
// manager does is what lines, explanations and pages say. Against a real API server.
package views_test

import (
	"os"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Quiet()
	code := m.Run()
	testenv.CleanUp()
	os.Exit(code)
}
