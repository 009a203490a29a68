// Command readygate-manager enforces NodeReadinessRules: it keeps a taint on selected nodes
// until the node conditions that a rule names hold.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/manager"
)

func main() {
	options := manager.NewOptions()
	flags := pflag.NewFlagSet("readygate-manager", pflag.ExitOnError)
	options.AddFlags(flags)
	_ = flags.Parse(os.Args[1:]) // ends the process on an error

	logger := zap.New(zap.UseFlagOptions(&options.Logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := options.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "readygate-manager:", err)
		os.Exit(1)
	}
}
