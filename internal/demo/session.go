package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/terminal"
)

// session is one run of the demo, with everything that it starts and stops.
type session struct {
	*Options
	*cluster
	script *script
	output *output
	log    *os.File
	dir    string // temporary directory of the session
	stays  bool   // keep running after the scenario, until interrupted

	programs      *errgroup.Group // manager, agents, reporters and other goroutines of the session
	source        *live.Source
	fleet         *live.Fleet
	monitor       *monitor
	endpoints     *endpoints
	reporters     *nodeReporters
	podComponents *podComponents
	agents        map[string]*prometheus.Registry // metrics of the agents, by node

	joined    []string // nodes of the scenario
	addresses int      // of pods, assigned so far
	proofs    []proof
}

// run starts the cluster and the programs, plays the scenario, and stops everything.
func (s *session) run(ctx context.Context) error {
	handler := slog.NewTextHandler(s.log, nil) // keep logs off the screen
	slog.SetDefault(slog.New(handler))
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetLogger(logr.FromSlogHandler(handler))
	s.output.print("Readygate demo: "+terminal.Clean(s.script.Title), terminal.Clean(s.script.About), "")

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	s.programs, running = errgroup.WithContext(running)
	err := s.start(running)
	started := err == nil
	if started {
		s.output.begin(running, s.fleet, s.monitor)
		err = s.play(running)
	}
	switch {
	case ctx.Err() != nil:
		err = ErrInterrupted
	case started:
		err = s.conclude(running, err)
	}
	cancel()
	s.output.end()
	return errors.Join(err, s.stop())
}

// conclude prints the results, and waits for the end of the context if the session stays.
func (s *session) conclude(ctx context.Context, played error) error {
	lines, ok := s.summary(s.output.style, played == nil)
	s.output.end()
	s.output.print(lines...)
	if s.stays {
		s.output.print("", "The cluster and the dashboard keep running: "+s.output.url)
		s.output.print("To inspect the cluster from another terminal (make build builds the plugin):",
			"  export KUBECONFIG="+s.kubeconfig, "  export PATH=$PWD/bin:"+s.Binaries+":$PATH", "  kubectl readiness status",
			"Press Ctrl-C to stop the demo and remove everything that it started.")
		<-ctx.Done()
	}
	if played == nil && ok {
		return nil
	}
	if played == nil || ctx.Err() != nil { // after the context ended, the error of the stopped program counts
		return errUnmet
	}
	return played
}

// start starts the cluster and the programs.
func (s *session) start(ctx context.Context) error {
	say := func(what string) { s.output.print(s.output.style.Dim("demo: " + what)) }
	var err error
	if s.cluster, err = startCluster(ctx, s.Binaries, s.dir, say); err != nil {
		return err
	}
	say("installing Readygate and starting the manager")
	if err := s.install(ctx, s.Root); err != nil {
		return err
	}
	config, err := s.as(ctx, admission.ManagerNamespace, admission.ManagerAccount, nil)
	if err != nil {
		return err
	}
	s.runProgram(ctx, "the manager", managerOptions(config).Run)
	if s.endpoints, err = serveEndpoints(ctx); err != nil {
		return err
	}
	connection, err := s.reporterConnection(ctx)
	if err != nil {
		return err
	}
	s.reporters = newReporters(s.dir, connection, s.endpoints, s.script.Components, s.programs)
	s.podComponents = newPodComponents(s.script.Components, s.setPodCondition, s.programs)
	s.monitor = newMonitor(time.Now)
	s.monitor.requirements = s.script.requirements()
	if err := s.watch(ctx); err != nil {
		return err
	}
	if s.source, err = live.NewSource(s.config); err != nil {
		return err
	}
	if s.fleet, err = s.source.Follow(ctx, true); err != nil {
		return err
	}
	return s.serveDashboard(ctx)
}

// runProgram runs a program until the session ends. If the program ends earlier, the session ends with an error.
func (s *session) runProgram(ctx context.Context, name string, run func(context.Context) error) {
	s.programs.Go(func() error {
		err := run(ctx)
		if ctx.Err() == nil {
			return fmt.Errorf("%s has ended: %v", name, err)
		}
		if err != nil {
			slog.Error("Stopping a program failed", "program", name, "error", err)
		}
		return nil
	})
}

func managerOptions(config *rest.Config) *manager.Options {
	options := manager.NewOptions()
	options.RestConfig, options.Registerer, options.HealthAddr = config, prometheus.NewRegistry(), "0"
	options.LeaderElect, options.LeaseSpace = false, admission.ManagerNamespace
	return options
}

// serveDashboard serves the dashboard until the context ends.
func (s *session) serveDashboard(ctx context.Context) error {
	listener, err := dashboard.Listen(0)
	if err != nil {
		return err
	}
	server := dashboard.New(dashboard.Options{
		Fleet:       s.fleet,
		Explanation: s.source.Explanation, PodExplanation: s.source.PodExplanation,
		Title: "demo: " + s.script.Title,
	})
	s.output.url = "http://" + listener.Addr().String()
	s.output.print("", fmt.Sprintf("The dashboard: %s   (logs: %s; the scenario takes %s)", s.output.url, s.log.Name(), about(s.script.Length())), "")
	s.runProgram(ctx, "the dashboard", func(ctx context.Context) error { return server.Serve(ctx, listener) })
	return nil
}

// stop waits for the programs, and stops the endpoints and the control plane.
func (s *session) stop() error {
	var errs []error
	if s.endpoints != nil {
		errs = append(errs, s.endpoints.close())
	}
	errs = append(errs, s.programs.Wait())
	if s.cluster != nil {
		errs = append(errs, s.plane.Stop())
	}
	return errors.Join(errs...)
}
