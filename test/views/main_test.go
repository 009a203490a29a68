// Package views tests that whoever shows the state of a cluster shows the truth: what the
// manager does is what lines, stories and pages say. Against a real API server.
package views_test

import (
	"os"
	"testing"

	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/testkit"
)

func TestMain(m *testing.M) {
	logger := zap.New(zap.Level(zapcore.DPanicLevel)) // what fails, a test says
	log.SetLogger(logger)
	klog.SetLogger(logger)
	code := m.Run()
	testkit.CleanUp()
	os.Exit(code)
}
