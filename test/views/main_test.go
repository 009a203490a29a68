// Package views tests that all views of a cluster (rows, explanations and the page) agree with what the manager does,
// against a real API server.
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
