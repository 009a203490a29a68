// Command scale measures the cost of Readygate's manager on a real API server with realistic nodes, and compares it with
// a minimal controller, the floor.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/test/scale/report"
)

func main() {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	root := &cobra.Command{Use: "scale", Short: "Measure the cost of Readygate's manager", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newRunCommand(), newFloorCommand(), newReportCommand())
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are the flags of run.
type options struct {
	plan         string
	nodes, rules int
	pairs        int
	manager, out string
	check        bool
}

func newRunCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure the manager and the floor, a minimal controller",
		Example: `  scale run --plan full                        # for docs/explanation/performance.md
  scale run --nodes 1000 --rules 5 --pairs 5   # all nodes flip, one size`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.plan, "plan", "", "Set of sizes and phases: full or short. Empty measures only flips, with --nodes and --rules.")
	flags.IntVar(&o.nodes, "nodes", 1000, "Number of nodes.")
	flags.IntVar(&o.rules, "rules", 1, "Number of rules that select every node.")
	flags.IntVar(&o.pairs, "pairs", 1, "Number of pairs of runs. A pair measures the manager and the floor, one after the other.")
	flags.StringVar(&o.manager, "manager", "bin/readygate-manager", "Path of the readygate-manager binary.")
	flags.StringVar(&o.out, "out", "", "File to write the results to, as JSON. Empty writes no file.")
	flags.BoolVar(&o.check, "check", false, "Fail if request or byte counts exceed their limits. Times are not checked.")
	return cmd
}

// lots returns what the options select.
func (o *options) lots() ([]lot, error) {
	switch {
	case o.plan == "full":
		return full(), nil
	case o.plan == "short":
		return short(), nil
	case o.plan != "":
		return nil, fmt.Errorf("--plan is %q, must be full, short or empty", o.plan)
	case o.nodes < 1 || o.rules < 1 || o.pairs < 1:
		return nil, errors.New("--nodes, --rules and --pairs must be at least 1")
	}
	return []lot{{size: size{o.nodes, o.rules}, pairs: o.pairs, loadOnly: true}}, nil
}

// command is the command line for the page, without paths.
func (o *options) command() string {
	if o.plan != "" {
		return "go run ./test/scale run --plan " + o.plan
	}
	return fmt.Sprintf("go run ./test/scale run --nodes %d --rules %d --pairs %d", o.nodes, o.rules, o.pairs)
}

func (o *options) run(ctx context.Context) error {
	lots, err := o.lots()
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, o.manager, "--version").Output()
	if err != nil {
		return fmt.Errorf("running --manager %s (build it with make build): %w", o.manager, err)
	}
	run := report.Run{Machine: thisMachine(), Command: o.command(), Version: strings.TrimSpace(string(version)), Date: time.Now().UTC().Truncate(time.Second)}
	var errs []error
	for _, l := range lots {
		err := l.run(ctx, o.manager, func(r report.Result) {
			run.Results = append(run.Results, r)
			if err := save(o.out, run); err != nil { // after each result: a later error loses none
				logf("%v", err)
			}
		})
		if err != nil {
			logf("FAILED: %v", err)
		}
		errs = append(errs, err)
	}
	fmt.Print(report.Tables(run))
	if o.check {
		if problems := report.Check(run); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("counts exceed their limits:\n  %s", strings.Join(problems, "\n  ")))
		}
	}
	return errors.Join(errs...)
}

// save writes a run to a file, if there is one.
func save(path string, run report.Run) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func newReportCommand() *cobra.Command {
	var in, notes, out string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write the Markdown page of a run",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := os.ReadFile(in)
			if err != nil {
				return err
			}
			var run report.Run
			if err := json.Unmarshal(data, &run); err != nil {
				return fmt.Errorf("reading %s: %w", in, err)
			}
			method, err := os.ReadFile(notes)
			if err != nil {
				return err
			}
			return os.WriteFile(out, report.Page(run, string(method)), 0o644)
		},
	}
	cmd.Flags().StringVar(&in, "in", "docs/explanation/performance.json", "Results file that run --out wrote.")
	cmd.Flags().StringVar(&notes, "notes", "test/scale/method.md", "Markdown file that describes the method.")
	cmd.Flags().StringVar(&out, "out", "docs/explanation/performance.md", "Markdown file to write.")
	return cmd
}

func thisMachine() report.Machine {
	m := report.Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS, Go: runtime.Version()}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if memory, err := proc.Meminfo(); err == nil {
		m.Memory = int64(ptr.Deref(memory.MemTotalBytes, 0))
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
		m.CPU = cpus[0].ModelName
	}
	return m
}

// logf prints progress.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "scale: %s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
