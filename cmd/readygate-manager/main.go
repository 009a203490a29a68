// Command readygate-manager enforces NodeReadinessRules: it keeps a taint on selected nodes
// until the node conditions that a rule names hold.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/version"
)

func main() {
	options := manager.NewOptions()
	flags := pflag.NewFlagSet("readygate-manager", pflag.ExitOnError)
	options.AddFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	_ = flags.Parse(os.Args[1:]) // ends the process on an error
	switch {
	case *showVersion:
		fmt.Println("readygate-manager", version.Version)
		return
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "readygate-manager: unknown argument %q: flags need '=' or start with --, e.g. --leader-elect=false\n", flags.Arg(0))
		os.Exit(2)
	}

	options.Logging.StacktraceLevel = zapcore.PanicLevel // an error says what is wrong without one
	logger := zap.New(zap.UseFlagOptions(&options.Logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := options.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "readygate-manager:", err)
		os.Exit(1)
	}
}
