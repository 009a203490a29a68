// Command reporterbench measures the reporter: its binary, memory and CPU, and the time from the first 200 of a component
// to the node's condition. It starts an API server on loopback, runs the binary against it and prints the numbers beside
// their budgets. It asserts nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/testenv"
)

const (
	checks       = 3           // of the reporter while its memory and CPU are measured
	interval     = time.Second // of these checks
	startTimeout = 3 * time.Minute
)

// options are the command line.
type options struct {
	reporter string
	period   time.Duration
	starts   int
	parallel int
}

func main() {
	var o options
	flags := pflag.NewFlagSet("reporterbench", pflag.ExitOnError)
	flags.StringVar(&o.reporter, "reporter", "bin/readygate-reporter", "Path of the reporter.")
	flags.DurationVar(&o.period, "for", 10*time.Minute, "How long memory and CPU are measured.")
	flags.IntVar(&o.starts, "starts", 200, "Number of components that become ready, each with a reporter of its own.")
	flags.IntVar(&o.parallel, "parallel", 4, "Number of these at the same time.")
	_ = flags.Parse(os.Args[1:]) // ends the process on an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reporterbench:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) (err error) {
	if o.period < time.Second || o.starts < 1 || o.parallel < 1 {
		return errors.New("--for must be at least 1s, --starts and --parallel at least 1")
	}
	if o.reporter, err = filepath.Abs(o.reporter); err != nil {
		return err
	}
	binary, err := os.Stat(o.reporter)
	if err != nil {
		return fmt.Errorf("--reporter (is it built? make build): %w", err)
	}
	l, err := newLab(ctx, o.reporter)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	before, after, err := l.footprint(ctx, o.period)
	if err != nil {
		return err
	}
	row := func(what, value, budget string) { fmt.Printf("%-52s %10s   %s\n", what, value, budget) }
	row("", "", "budget")
	row("binary", fmt.Sprintf("%.1f MB", float64(binary.Size())/1e6), "≤ 15 MB")
	row(fmt.Sprintf("resident memory after %v with %d checks", o.period, checks), fmt.Sprintf("%.1f MiB", float64(after.RSS)/(1<<20)), "≤ 12 MiB")
	row("peak", fmt.Sprintf("%.1f MiB", float64(after.Peak)/(1<<20)), "")
	row(fmt.Sprintf("CPU of one core, a check every %v", interval), fmt.Sprintf("%.2f %%", 100*(after.CPU-before.CPU).Seconds()/o.period.Seconds()), "≤ 1 %")
	delays, err := l.delays(ctx, o.starts, o.parallel)
	for _, q := range []struct {
		percent int
		budget  string
	}{{50, ""}, {99, "≤ 1.20 s"}, {100, ""}} {
		row(fmt.Sprintf("first 200 → condition, p%d of %d", q.percent, len(delays)), fmt.Sprintf("%.2f s", delays.Quantile(q.percent).Seconds()), q.budget)
	}
	return err
}

// footprint runs a reporter whose components are ready, and reads what it used when its conditions are True and a
// period later.
func (l *lab) footprint(ctx context.Context, period time.Duration) (before, after testenv.Usage, err error) {
	const node = "footprint"
	var config strings.Builder
	config.WriteString("apiVersion: readygate.dev/v1alpha1\nkind: ReporterConfig\nchecks:\n")
	var conditions []string
	for i := range checks {
		component := fmt.Sprintf("%s-%d", node, i)
		l.setReady(component)
		conditions = append(conditions, fmt.Sprintf("bench.example.com/Ready%d", i))
		fmt.Fprintf(&config, "- {conditionType: %s, interval: %v, http: {url: %q}}\n", conditions[i], interval, l.components.URL+"/"+component)
	}
	file := filepath.Join(l.dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return before, after, err
	}
	p, err := l.start(ctx, node, nil, "--config", file)
	if err != nil {
		return before, after, err
	}
	defer p.stop()
	for _, condition := range conditions {
		if _, err := l.await(ctx, p, seen{node, condition, "True"}); err != nil {
			return before, after, err
		}
	}
	if before, err = testenv.UsageOf(p.cmd.Process.Pid); err != nil {
		return before, after, err
	}
	if err := sleep(ctx, period); err != nil {
		return before, after, err
	}
	after, err = testenv.UsageOf(p.cmd.Process.Pid)
	return before, after, err
}
