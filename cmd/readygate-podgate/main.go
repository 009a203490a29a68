// Command readygate-podgate opens the network readiness gates of the pods of its node, when every
// component of the pod network is ready.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/podgate"
	"github.com/readygate/readygate/internal/version"
)

func main() {
	options := podgate.NewOptions()
	flags := pflag.NewFlagSet("readygate-podgate", pflag.ContinueOnError)
	options.AddFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.Usage = func() {
		fmt.Print("readygate-podgate opens the gates of the pods of its node.\n\nFlags:\n", flags.FlagUsages())
	}
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "readygate-podgate: %v; see --help\n", err)
		os.Exit(2)
	case *showVersion:
		fmt.Println("readygate-podgate", version.Version)
		return
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "readygate-podgate: unknown argument %q: flags begin with --, e.g. --node-name=NAME\n", flags.Arg(0))
		os.Exit(2)
	}
	options.Logging.StacktraceLevel = zapcore.PanicLevel // an error says what is wrong without one
	logger := zap.New(zap.UseFlagOptions(&options.Logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := options.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "readygate-podgate:", err)
		os.Exit(1)
	}
}
