package e2e_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/test/e2e/lab"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // scenarios log their own steps
	os.Exit(lab.Main(m.Run))
}
