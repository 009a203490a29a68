package reporter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// Options are the flags of a reporter. The checks come from the environment or from a file.
type Options struct {
	Config     string
	Kubeconfig string
	LogLevel   string
	Validate   bool
}

// AddFlags adds a flag for every option.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Config, "config", "", "Path of a configuration file with checks; replaces "+ConditionType+" and "+CheckEndpoint+". The reporter reloads the file when it changes.")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "Path of a kubeconfig, for a reporter that does not run in a pod. Empty: the service account of the pod or, outside a pod, the file in KUBECONFIG.")
	flags.StringVar(&o.LogLevel, "log-level", "info", "Minimum level of log messages: debug, info, warn or error.")
	flags.BoolVar(&o.Validate, "validate", false, "Validate the configuration, print the error or the checks, and exit. Needs no cluster.")
}

// Usage is the text of --help before the flags.
var Usage = `readygate-reporter reports the health of a component on this node as a node condition.

Environment variables configure one check:

  ` + ConditionType + `        type of the node condition, e.g. example.com/NetworkReady
  ` + CheckEndpoint + `        endpoint to check: http://, https://, tcp://, grpc:// or file://,
                        e.g. http://localhost:9099/readiness
  ` + CheckInterval + `        pause between two checks while the condition is True (30s);
                        while it is not True, the pause is 500ms
  ` + CheckTimeout + `         maximum duration of one check (2s)

A file, set with --config, configures any number of checks:

` + indented(Example) + `
Kinds of checks: http, tcp, grpc, file, exec, cni (optionally with a canary) and peers.
docs/reference/reporter.md lists every field. The reporter reloads the file when it changes.

Environment variables that apply in both cases:

  ` + NodeName + `             name of the node (the node that the pod's token names)
  ` + HeartbeatPeriod + `      time between two writes of unchanged conditions (5m)
  ` + MetricsBindAddress + `  address of /metrics, /healthz and /readyz (:9445); 0 disables them
  ` + ImpersonateNode + `      true: send requests as the node, system:node:<name>

On SIGHUP the reporter reloads the file and runs every check immediately.

Flags:
`

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// Run reports until SIGTERM or SIGINT.
func (o *Options) Run(ctx context.Context) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return fmt.Errorf("--log-level is %q, must be debug, info, warn or error, e.g. --log-level=debug", o.LogLevel)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	if err := o.exclusive(os.Getenv); err != nil {
		return err
	}
	environment, err := ReadEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	if err := validate(environment, o.Config, o.Validate); err != nil || o.Validate {
		return err
	}
	connection, err := o.connection()
	if err != nil {
		return err
	}
	r, err := New(environment, o.Config, connection)
	if err != nil {
		return err
	}
	limitMemory(len(r.tasks))
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGHUP)
	r.Run(ctx, now)
	return nil
}

// exclusive returns an error if both a file and a variable of a check are set.
func (o *Options) exclusive(variable func(string) string) error {
	for _, name := range []string{ConditionType, CheckEndpoint, CheckInterval, CheckTimeout} {
		if o.Config != "" && variable(name) != "" {
			return fmt.Errorf("--config=%s and %s are both set: remove one of them", o.Config, name)
		}
	}
	return nil
}

func (o *Options) connection() (nodestatus.Connection, error) {
	file := o.Kubeconfig
	if file == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		file = os.Getenv("KUBECONFIG")
	}
	if file != "" {
		connection, err := nodestatus.FromKubeconfig(file)
		if err != nil {
			return connection, fmt.Errorf("--kubeconfig: %w", err)
		}
		return connection, nil
	}
	return nodestatus.InCluster(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"), nodestatus.AccountDir)
}

// validate returns an error for an invalid configuration, and prints the checks of a valid one if show is set.
func validate(environment Environment, file string, show bool) error {
	// The service variables of the pod are not set here, so every one gets a placeholder.
	anywhere := func(name string) string {
		if strings.HasSuffix(name, "_SERVICE_PORT") {
			return "1"
		}
		return name
	}
	_, tasks, err := (&Reporter{node: "any", file: file, environment: environment, variable: anywhere}).load()
	if err != nil || !show {
		return err
	}
	for _, t := range tasks {
		fmt.Printf("%s: %s, interval %v, timeout %v\n", t.conditionType, t.kind, t.interval, t.timeout)
	}
	return nil
}

// limitMemory makes the garbage collector run early and uses one processor: a reporter does little
// work, and both save memory on the node. GOGC, GOMEMLIMIT and GOMAXPROCS in the environment
// take precedence.
func limitMemory(checks int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(6<<20 + checks*128<<10)) // heap; freed memory above it would stay resident
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
