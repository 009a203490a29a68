// Command reporterbench measures what reporters take of a node, and how long it is from a
// component that is ready to a condition that says so. It runs binaries as pods do, with the
// token of a pod and, in a part of the runs, with the limits of a sidecar, against an API
// server that it starts on loopback. What it starts, it ends; nothing is left of it.
//
// It asserts nothing about time: it prints what it saw beside what was planned.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// options are the command line.
type options struct {
	reporter string
	others   []string
	watch    time.Duration
	starts   int
	parallel int
	kube     string
}

func main() {
	var o options
	flags := pflag.NewFlagSet("reporterbench", pflag.ExitOnError)
	flags.StringVar(&o.reporter, "reporter", "bin/readygate-reporter", "Our reporter, as make build builds it.")
	flags.StringArrayVar(&o.others, "other", nil, "NAME=PATH of another reporter that reads the same variables; may be repeated.")
	flags.DurationVar(&o.watch, "for", 10*time.Minute, "How long the footprint is watched.")
	flags.IntVar(&o.starts, "starts", 200, "How many starts the lag is measured over; 0: not at all.")
	flags.IntVar(&o.parallel, "parallel", 4, "How many of these run at a time.")
	flags.StringVar(&o.kube, "kube", binaries(), "Directory with etcd and kube-apiserver.")
	_ = flags.Parse(os.Args[1:]) // ends the process on an error
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "reporterbench:", err)
		os.Exit(1)
	}
}

func binaries() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	return "bin/kube"
}

func (o options) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	subjects, err := o.subjects()
	if err != nil {
		return err
	}
	limits, noLimits := newLimits()
	if noLimits == nil {
		defer func() { err = errors.Join(err, limits.remove()) }()
	}
	o.announce(subjects, noLimits)
	l, err := newLab(ctx, o.kube)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	err = l.footprints(ctx, subjects, o.watch)
	if o.starts > 0 && ctx.Err() == nil {
		err = errors.Join(err, l.lags(ctx, subjects, limits, noLimits, o.starts, o.parallel))
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// subjects are the binaries to measure, ours first.
func (o options) subjects() ([]subject, error) {
	switch {
	case o.watch < time.Second:
		return nil, fmt.Errorf("--for is %v, must be at least 1s, e.g. --for=10m", o.watch)
	case o.starts < 0:
		return nil, fmt.Errorf("--starts is %d, must not be negative, e.g. --starts=200", o.starts)
	case o.parallel < 1:
		return nil, fmt.Errorf("--parallel is %d, must be at least 1, e.g. --parallel=4", o.parallel)
	}
	ours, err := newSubject("readygate", o.reporter)
	if err != nil {
		return nil, fmt.Errorf("--reporter (is it built? make build): %w", err)
	}
	ours.ours = true
	all := []subject{ours}
	for _, other := range o.others {
		name, path, found := strings.Cut(other, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--other is %q, must be a name and a path, e.g. --other=reference=/tmp/reporter", other)
		}
		if !isRoot() {
			say("%s is skipped: without root it cannot be given the token of a pod where it looks for it; run as root", name)
			continue
		}
		theirs, err := newSubject(name, path)
		if err != nil {
			return nil, fmt.Errorf("--other: %w", err)
		}
		all = append(all, theirs)
	}
	return all, nil
}

// announce says what comes, and how long it will take.
func (o options) announce(subjects []subject, noLimits error) {
	total := 10*time.Second + o.watch
	say("footprint of %d binaries at the same time: %v", len(subjects), o.watch)
	if o.starts > 0 {
		for _, s := range subjects {
			free := s.expect(o.starts, o.parallel, false)
			total += free
			say("lag of %s, %d starts, %d at a time, without limit: about %v", s.name, o.starts, o.parallel, free)
			if noLimits != nil {
				say("lag of %s with %s: SKIPPED: %v", s.name, sidecar, noLimits)
				continue
			}
			limited := s.expect(o.starts, o.parallel, true)
			total += limited
			say("lag of %s, the same with %s: about %v", s.name, sidecar, limited)
		}
		total += slowest + 5*time.Second
		say("lag of pollers: about %v", slowest+5*time.Second)
	}
	say("in all about %v; Ctrl-C ends it and leaves nothing", total.Round(10*time.Second))
}

// say prints what is going on.
func say(format string, args ...any) {
	fmt.Printf("reporterbench: %s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
