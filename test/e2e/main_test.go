package e2e_test

import (
	"os"
	"testing"

	"github.com/readygate/readygate/test/e2e/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }
