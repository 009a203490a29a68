// Command scale measures what a controller of NodeReadinessRules costs, on a real API server
// with realistic nodes, beside the least that any controller must cost.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/test/scale/report"
)

func main() {
	if err := execute(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func execute() error {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "scale",
		Short:         "Measure what a controller of NodeReadinessRules costs",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRunCommand(), newFloorCommand(), newReportCommand())
	return root.ExecuteContext(ctx)
}

// options of a run.
type options struct {
	plan        string
	scenarios   []string
	nodes       []int
	rules       []int
	bystanders  int
	repeat      int
	mode        string
	writers     int
	manager     string
	controllers []string
	only        []string
	out         string
	add         bool
	check       bool
	pace        pace
}

func newRunCommand() *cobra.Command {
	o := &options{pace: usual}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure Readygate, the floor, and other controllers if given",
		Example: `  scale run --plan full                        # what docs/performance.md is made from
  scale run --nodes 1000 --rules 1,5           # one scenario, two sizes
  scale run --controller 'mine=/path/to/controller --kubeconfig {kubeconfig}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), commandOf(cmd.Flags())) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.plan, "plan", "", "full, large or short: a set of scenarios and sizes. Empty: those of --scenario, --nodes and --rules.")
	flags.StringSliceVar(&o.scenarios, "scenario", []string{report.Flip}, "What happens: "+strings.Join(known(), ", ")+". Several are played one after another with the same nodes.")
	flags.IntSliceVar(&o.nodes, "nodes", []int{1000}, "Numbers of nodes, each with a control plane of its own.")
	flags.IntSliceVar(&o.rules, "rules", []int{1}, "Numbers of rules that all select every node.")
	flags.IntVar(&o.bystanders, "bystanders", 0, "Rules besides that select no node.")
	flags.IntVar(&o.repeat, "repeat", 0, "How often it is measured, by turns. Of several runs the faster of each phase is shown; ratios are the median of runs beside those next to them. What other guests of the host disturb is measured once more. 0: once, or as often as the plan says.")
	flags.StringVar(&o.mode, "mode", "continuous", "Mode of the rules: continuous or bootstrap-only.")
	flags.IntVar(&o.writers, "writers", 16, "Conditions that are written at the same time.")
	flags.StringVar(&o.manager, "manager", "bin/readygate-manager", "Path of Readygate's manager. Empty: it is not measured.")
	flags.StringArrayVar(&o.controllers, "controller", nil, "Another controller: NAME=COMMAND, in which {kubeconfig} stands for the path of a file, {metrics} for an address (127.0.0.1:PORT) on which it may serve metrics, and {pprof} for one where its heap is read, if it serves pprof there.")
	flags.StringSliceVar(&o.only, "only", nil, "Names of the subjects to measure: readygate, floor, those of --controller, and nobody, which is the load alone: without it bytes into etcd cannot be compared. Empty: all.")
	flags.StringVar(&o.out, "out", "", "File for the results, as JSON.")
	flags.BoolVar(&o.add, "append", false, "Add the results to those that are in the file. What is there already counts as a run before.")
	flags.BoolVar(&o.check, "check", false, "Fail if counts are not as promised. Times are never checked.")
	flags.DurationVar(&o.pace.steady, "steady-time", o.pace.steady, "How long the scenario steady lasts.")
	flags.Float64Var(&o.pace.heartbeat, "heartbeats", o.pace.heartbeat, "Heartbeats a second in the scenario steady.")
	flags.Float64Var(&o.pace.joins, "joins", o.pace.joins, "Nodes a second in the scenario join.")
	return cmd
}

func known() []string {
	names := []string{report.Join}
	for _, story := range stories {
		names = append(names, story.name)
	}
	return names
}

// validate says which options cannot work.
func (o *options) validate() error {
	switch {
	case o.mode != string(v1alpha1.EnforcementModeContinuous) && o.mode != string(v1alpha1.EnforcementModeBootstrapOnly):
		return fmt.Errorf("--mode is %q, must be continuous or bootstrap-only", o.mode)
	case o.writers < 1:
		return fmt.Errorf("--writers is %d, must be at least 1", o.writers)
	case o.repeat < 0:
		return fmt.Errorf("--repeat is %d, must not be negative", o.repeat)
	case o.add && o.out == "":
		return errors.New("--append needs --out: the file to add to")
	}
	return nil
}

// lots are what the options ask for.
func (o *options) lots() ([]lot, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	subjects := []subject{floorSubject(self)}
	if o.manager != "" {
		subjects = append(subjects, ours(o.manager))
	}
	for _, text := range o.controllers {
		s, err := parseSubject(text)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	nobody := subject{name: report.Nobody}
	switch o.plan {
	case "full":
		return full(subjects, nobody, o.writers, o.mode), nil
	case "large":
		return large(subjects, nobody, o.writers, o.mode), nil
	case "short":
		return short(subjects, nobody, o.writers, o.mode), nil
	case "":
		return o.own(subjects, nobody)
	default:
		return nil, fmt.Errorf("--plan is %q, must be full, large, short or empty", o.plan)
	}
}

func (o *options) own(subjects []subject, nobody subject) ([]lot, error) {
	for _, name := range o.scenarios {
		if !slices.Contains(known(), name) {
			return nil, fmt.Errorf("--scenario names %q, must be some of %s", name, strings.Join(known(), ", "))
		}
	}
	if slices.Contains(o.scenarios, report.Join) && len(o.scenarios) > 1 {
		return nil, errors.New("--scenario: join begins without nodes, so it cannot follow another: run it alone")
	}
	var lots []lot
	for _, nodes := range o.nodes {
		for _, rules := range o.rules {
			if nodes < 1 || rules < 1 {
				return nil, errors.New("--nodes and --rules must be at least 1")
			}
			l := lot{scenarios: o.scenarios, size: size{Nodes: nodes, Rules: rules, Writers: o.writers, Mode: o.mode}, bystanders: o.bystanders, pace: o.pace, tries: report.Tries}
			l.size.Proxied = slices.Contains(o.scenarios, report.Slow) || slices.Contains(o.scenarios, report.Busy)
			l.subjects = append(slices.Clone(subjects), nobody)
			lots = append(lots, l)
		}
	}
	return lots, nil
}

func (o *options) run(ctx context.Context, command string) error {
	lots, err := o.lots()
	if err != nil {
		return err
	}
	run := report.Run{Machine: thisMachine(), Command: command, Version: versionOf(ctx, o.manager), Date: time.Now().UTC().Truncate(time.Second)}
	if o.add {
		before, err := load(o.out)
		if err != nil {
			return fmt.Errorf("--append: %w", err)
		}
		if run, err = run.After(before); err != nil {
			return fmt.Errorf("--append: %s %w", o.out, err)
		}
	}
	var errs []error
	for _, l := range lots {
		if o.repeat > 0 {
			l.repeats = o.repeat
		}
		if len(o.only) > 0 {
			l.subjects = slices.DeleteFunc(slices.Clone(l.subjects), func(s subject) bool { return !slices.Contains(o.only, s.name) })
		}
		for _, scenario := range l.scenarios {
			l.before = max(l.before, run.Pairs(l.trial(scenario)))
		}
		errs = append(errs, l.measure(ctx, func(r report.Result) {
			run.Add(r)
			if err := save(o.out, run); err != nil { // what is measured is not lost by what fails later
				say("%v", err)
			}
		}))
	}
	report.Table(os.Stdout, run)
	if o.check {
		if problems := report.Check(run); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("counts are not as promised:\n  %s", strings.Join(problems, "\n  ")))
		}
	}
	return errors.Join(errs...)
}

// say prints what is going on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "scale: %s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
