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

// Options are the command line of a reporter; most of what it does is in the environment or
// in a file.
type Options struct {
	Config     string
	Kubeconfig string
	LogLevel   string
	Validate   bool
}

// AddFlags adds a flag for every option.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Config, "config", "", "File with any number of checks, instead of "+ConditionType+" and "+CheckEndpoint+". It is read again when it changes.")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "Kubeconfig for a reporter that does not run in a pod. Empty: the account of the pod or, outside of one, the KUBECONFIG variable.")
	flags.StringVar(&o.LogLevel, "log-level", "info", "What to log: debug, info, warn or error.")
	flags.BoolVar(&o.Validate, "validate", false, "Check the configuration, print what is wrong with it, and exit. Needs no cluster.")
}

// Usage is the text of --help before the flags.
var Usage = `readygate-reporter turns the health of a component on this node into a node condition.

What to check comes from the environment:

  ` + ConditionType + `        type of the node condition, e.g. example.com/NetworkReady
  ` + CheckEndpoint + `        what to check: http://, https://, tcp://, grpc:// or file://,
                        e.g. http://localhost:9099/readiness
  ` + CheckInterval + `        pause between two checks while the condition is True (30s);
                        until it is True, the pause is 500ms
  ` + CheckTimeout + `         how long a check may take (2s)

or from a file with any number of checks of every kind, given with --config:

` + indented(Example) + `
Kinds of checks: http, tcp, grpc, file, exec, cni (also with a canary) and peers; every field
is in docs/reference/reporter.md. The file is read again when it changes.

Variables that hold with both:

  ` + NodeName + `             name of the node; else the one that the pod's token names
  ` + HeartbeatPeriod + `      how often a condition is written though nothing changed (5m)
  ` + MetricsBindAddress + `  where /metrics, /healthz and /readyz are served (:9445); 0: nowhere
  ` + ImpersonateNode + `      true: make requests as the node, system:node:<name>

SIGHUP reads the file again and makes every check run at once.

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

// exclusive returns an error if a variable of a check is set although a file has the checks.
func (o *Options) exclusive(variable func(string) string) error {
	for _, name := range []string{ConditionType, CheckEndpoint, CheckInterval, CheckTimeout} {
		if o.Config != "" && variable(name) != "" {
			return fmt.Errorf("--config=%s is given, and %s is set, which is for a reporter without a file: leave out one of them", o.Config, name)
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

// validate returns what is wrong with a configuration, and prints the checks of a valid one if show is set.
func validate(environment Environment, file string, show bool) error {
	// Services that pods find by variables are not known here, and need not be.
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
		fmt.Printf("%s: %s every %v, at most %v\n", t.conditionType, t.kind, t.interval, t.timeout)
	}
	return nil
}

// limitMemory collects garbage early and keeps to one processor, whatever the node has: both
// cost memory that the node's pods can use, and a reporter has little to do. A user's own
// GOGC, GOMEMLIMIT and GOMAXPROCS win.
func limitMemory(checks int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(6<<20 + checks*128<<10)) // for the heap; more would stay unused, but resident
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
