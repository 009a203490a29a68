// Command readygate-manager enforces NodeReadinessRules and, with podgate, PodReadinessRules: it keeps a taint on the
// selected nodes until the required node conditions are met, and compiles the policy that adds gates to pods.
//
// With the argument cleanup, it removes everything that Readygate added to the cluster.
package main

import (
	"os"

	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/manager/uninstall"
	"github.com/readygate/readygate/internal/program"
)

const usage = "readygate-manager [flags] enforces rules. readygate-manager cleanup [flags] removes everything that Readygate added to the cluster."

func main() {
	if len(os.Args) > 1 && os.Args[1] == "cleanup" {
		os.Exit(program.Run("readygate-manager cleanup", usage, os.Args[2:], uninstall.NewOptions()))
	}
	os.Exit(program.Run("readygate-manager", usage, os.Args[1:], manager.NewOptions()))
}
