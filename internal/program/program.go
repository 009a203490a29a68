// Package program is the shared main function of readygate-manager, its cleanup and readygate-podgate: flags of the client
// and of the log, and exit codes. The reporter and the latch do not use it, because client-go is larger than both of them.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/version"
)

// Options are the options that the programs share.
type Options struct {
	Kubeconfig string
	// RestConfig is used instead of a kubeconfig or the in-cluster configuration; nil: one of those is loaded.
	RestConfig *rest.Config

	logging zap.Options
}

// AddFlags adds a flag for every option that a user may set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig file. Empty: the KUBECONFIG variable, the in-cluster configuration, or ~/.kube/config.")
	logging := flag.NewFlagSet("logging", flag.ContinueOnError)
	o.logging.BindFlags(logging)
	flags.AddGoFlagSet(logging)
}

// Config returns the configuration of the client: a copy of RestConfig, the configuration in the kubeconfig, or the one in
// the default places (see the flag).
func (o *Options) Config(userAgent string) (*rest.Config, error) {
	if o.RestConfig != nil {
		return rest.AddUserAgent(rest.CopyConfig(o.RestConfig), userAgent), nil
	}
	load := config.GetConfig
	if o.Kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", o.Kubeconfig) }
	}
	found, err := load()
	if err != nil {
		return nil, fmt.Errorf("loading the client configuration (set --kubeconfig or KUBECONFIG, or run in a cluster): %w", err)
	}
	return rest.AddUserAgent(found, userAgent), nil
}

// SetLogger sets the logger of the process according to the flags.
func (o *Options) SetLogger() {
	o.logging.StacktraceLevel = zapcore.PanicLevel // the message of an error is enough
	logger := zap.New(zap.UseFlagOptions(&o.logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
}

// Command is a command with its options, which embed Options.
type Command interface {
	AddFlags(flags *pflag.FlagSet)
	Run(ctx context.Context) error
	SetLogger()
}

// Run parses the arguments and runs the command until SIGTERM or SIGINT. It returns the exit code: 2 if the
// arguments are wrong, and 1 if the command fails.
func Run(name, usage string, args []string, command Command) int {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	command.AddFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.Usage = func() { fmt.Print(usage, "\n\nFlags of ", name, ":\n", flags.FlagUsages()) }
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v; see --help\n", name, err)
		return 2
	case *showVersion:
		program, _, _ := strings.Cut(name, " ")
		fmt.Println(program, version.Version)
		return 0
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "%s: unknown argument %q: write flags as --name=value, e.g. --kubeconfig=FILE, and a command before the flags; see --help\n", name, flags.Arg(0))
		return 2
	}
	command.SetLogger()
	if err := command.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// InClusterNamespace returns the namespace of the pod that this process runs in. The error names the flag that is required
// outside of a cluster.
func InClusterNamespace(flag string) (string, error) {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("%s is required outside of a cluster, e.g. %s=readygate-system: %w", flag, flag, err)
	}
	return strings.TrimSpace(string(data)), nil
}
