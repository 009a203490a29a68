package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// session is one run of the demo: everything that was started for it, and that ends with it.
type session struct {
	*Options
	script *script
	output *output
	log    *os.File
	dir    string // of files that end with it

	cluster *cluster
	manager *localManager
	player  *player
	served  sync.WaitGroup
}

// run starts everything, plays, and ends everything.
func (s *session) run(ctx context.Context, stays bool) error {
	s.quiet()
	s.output.print("Readygate demo: "+terminal.Clean(s.script.Title), terminal.Clean(s.script.About), "")
	watching, unwatch := context.WithCancel(ctx)
	err := s.perform(watching, stays && !s.Once)
	unwatch()
	s.served.Wait()
	s.output.end()
	return errors.Join(err, s.stop())
}

// quiet lets nothing but the scenario onto the screen.
func (s *session) quiet() {
	handler := slog.NewTextHandler(s.log, nil)
	slog.SetDefault(slog.New(handler))
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetLogger(logr.FromSlogHandler(handler))
}

// perform plays the scenario and says what was proven.
func (s *session) perform(ctx context.Context, stays bool) error {
	if err := s.start(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	s.output.begin(ctx, s.player.fleet, s.player.monitor)
	played := s.player.play(ctx)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	lines, ok := s.player.summary(s.output.style, played == nil)
	s.output.end()
	s.output.print(lines...)
	if stays {
		s.output.print("", "The cluster goes on, and so does the dashboard: "+s.output.url)
		s.output.print("Look around from another terminal (make build makes the plugin):",
			"  export KUBECONFIG="+s.cluster.kubeconfig, "  export PATH=$PWD/bin:"+s.Binaries+":$PATH", "  kubectl readiness status",
			"Ctrl-C stops the demo and removes everything that it started.")
		<-ctx.Done()
	}
	switch {
	case played != nil:
		return played
	case !ok:
		return errUnmet
	}
	return nil
}

func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// start starts everything but the scenario.
func (s *session) start(ctx context.Context) error {
	if err := s.openCluster(ctx); err != nil {
		return err
	}
	if err := s.cluster.installReporter(ctx); err != nil {
		return err
	}
	s.player = &player{cluster: s.cluster, script: s.script, manager: s.manager, output: s.output, monitor: newMonitor(time.Now), podComponents: newPodComponents(s.script.Components)}
	s.player.monitor.requirements = s.script.requirements()
	var err error
	if s.player.endpoints, err = serveEndpoints(ctx); err != nil {
		return err
	}
	if err := s.startPods(ctx); err != nil {
		return err
	}
	if s.player.reporters, err = s.newReporters(ctx); err != nil {
		return err
	}
	if err := s.player.monitor.follow(ctx, s.cluster.config); err != nil {
		return err
	}
	if s.player.source, err = live.NewSource(s.cluster.config); err != nil {
		return err
	}
	if s.player.fleet, err = s.player.source.Follow(ctx, true); err != nil {
		return err
	}
	return s.serveDashboard(ctx)
}

// startPods starts what a scenario with rules for pods needs. Agents run when their nodes have joined.
func (s *session) startPods(ctx context.Context) error {
	if err := s.player.podComponents.follow(ctx, s.cluster.config); err != nil {
		return err
	}
	if !s.script.gatesPods() {
		return nil
	}
	if err := s.cluster.installAgents(ctx, s.Root); err != nil {
		return err
	}
	s.player.agents = newAgents(s.cluster.asAgent)
	return nil
}

// openCluster starts a control plane with Readygate on it.
func (s *session) openCluster(ctx context.Context) error {
	say := func(what string) { s.output.print(s.output.style.Dim("demo: " + what)) }
	var err error
	if s.cluster, err = startCluster(ctx, s.Binaries, s.dir, say); err != nil {
		return err
	}
	say("installing Readygate, and starting its manager")
	if err := s.cluster.installCRDs(ctx); err != nil {
		return err
	}
	if err := s.cluster.installManager(ctx, s.Root); err != nil {
		return err
	}
	config, err := s.cluster.as(ctx, admission.ManagerNamespace, admission.ManagerAccount, nil)
	if err != nil {
		return err
	}
	s.manager = runManager(config)
	return nil
}

// newReporters makes the reporters of the scenario; none runs yet.
func (s *session) newReporters(ctx context.Context) (*nodeReporters, error) {
	config, err := s.cluster.as(ctx, Namespace, reporterAccount, nil)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "reporter.kubeconfig")
	if err := controlplane.WriteKubeconfig(file, config); err != nil {
		return nil, err
	}
	connection, err := nodestatus.FromKubeconfig(file)
	if err != nil {
		return nil, err
	}
	return newReporters(s.dir, connection, s.player.endpoints, s.script.Components), nil
}

// serveDashboard serves the page until the context is over.
func (s *session) serveDashboard(ctx context.Context) error {
	listener, err := dashboard.Listen(0)
	if err != nil {
		return err
	}
	server := dashboard.New(dashboard.Options{
		Fleet: s.player.fleet,
		Story: func(ctx context.Context, node string) (view.Story, error) {
			return s.player.source.Story(ctx, node, time.Now)
		},
		PodStory: func(ctx context.Context, namespace, name string) (view.PodStory, error) {
			return s.player.source.PodStory(ctx, namespace, name, time.Now)
		},
		Now: time.Now, Title: "demo: " + s.script.Title,
	})
	s.output.url = "http://" + listener.Addr().String()
	s.output.print("", fmt.Sprintf("The dashboard: %s   (logs: %s; the scenario takes %s)", s.output.url, s.log.Name(), about(s.script.Length())), "")
	s.served.Go(func() {
		if err := server.Serve(ctx, listener); err != nil {
			slog.Error("serving the dashboard", "error", err)
		}
	})
	return nil
}

// stop ends everything that was started.
func (s *session) stop() error {
	var errs []error
	if s.player != nil {
		s.player.agents.stop()
		s.player.podComponents.stop()
		if s.player.reporters != nil {
			s.player.reporters.stop()
		}
		if s.player.endpoints != nil {
			errs = append(errs, s.player.endpoints.close())
		}
	}
	errs = append(errs, s.manager.stop())
	if s.cluster != nil {
		errs = append(errs, s.cluster.plane.Stop())
	}
	return errors.Join(errs...)
}
