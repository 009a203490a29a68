// Command readygate-manager enforces NodeReadinessRules: it keeps a taint on selected nodes
// until the node conditions that a rule names hold.
//
// With the argument cleanup it removes what Readygate added to the cluster instead.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/manager/uninstall"
	"github.com/readygate/readygate/internal/version"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "cleanup" {
		options := uninstall.NewOptions()
		run("readygate-manager cleanup", os.Args[2:], options, &options.Logging)
		return
	}
	options := manager.NewOptions()
	run("readygate-manager", os.Args[1:], options, &options.Logging)
}

// command is what a set of options can do.
type command interface {
	AddFlags(flags *pflag.FlagSet)
	Run(ctx context.Context) error
}

// run parses the arguments and does the command. It ends the process if that fails.
func run(name string, args []string, options command, logging *zap.Options) {
	flags := pflag.NewFlagSet(name, pflag.ExitOnError)
	options.AddFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "readygate-manager [flags] enforces rules; readygate-manager cleanup [flags] takes everything back.\n\nFlags of %s:\n%s", name, flags.FlagUsages())
	}
	_ = flags.Parse(args) // ends the process on an error
	switch {
	case *showVersion:
		fmt.Println("readygate-manager", version.Version)
		return
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "%s: unknown argument %q: flags need '=' or start with --, e.g. --kubeconfig=FILE; the command cleanup comes first\n", name, flags.Arg(0))
		os.Exit(2)
	}

	logging.StacktraceLevel = zapcore.PanicLevel // an error says what is wrong without one
	logger := zap.New(zap.UseFlagOptions(logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := options.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
