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

// show is one performance: everything that was started for it, and that ends with it.
type show struct {
	*Options
	script *script
	teller *teller
	log    *os.File
	dir    string // of files that end with it

	stage    *stage
	manager  *enforcer
	director *director
	served   sync.WaitGroup
}

// run starts everything, plays, and ends everything.
func (s *show) run(ctx context.Context, stays bool) error {
	s.quiet()
	s.teller.say("Readygate demo: "+terminal.Clean(s.script.Title), terminal.Clean(s.script.About), "")
	watching, unwatch := context.WithCancel(ctx)
	err := s.perform(watching, stays && !s.Once)
	unwatch()
	s.served.Wait()
	s.teller.end()
	return errors.Join(err, s.stop())
}

// quiet lets nothing but the story onto the screen.
func (s *show) quiet() {
	handler := slog.NewTextHandler(s.log, nil)
	slog.SetDefault(slog.New(handler))
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetLogger(logr.FromSlogHandler(handler))
}

// perform plays the story and says what was proven.
func (s *show) perform(ctx context.Context, stays bool) error {
	if err := s.start(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	s.teller.begin(ctx, s.director.fleet, s.director.witness)
	played := s.director.play(ctx)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	lines, ok := s.director.summary(s.teller.style, played == nil)
	s.teller.end()
	s.teller.say(lines...)
	if stays {
		s.teller.say("", "The cluster goes on, and so does the dashboard: "+s.teller.url)
		s.teller.say("Look around from another terminal (make build makes the plugin):",
			"  export KUBECONFIG="+s.stage.kubeconfig, "  export PATH=$PWD/bin:"+s.Binaries+":$PATH", "  kubectl readiness status",
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

// start starts everything but the story.
func (s *show) start(ctx context.Context) error {
	if err := s.openCluster(ctx); err != nil {
		return err
	}
	if err := s.stage.installReporter(ctx); err != nil {
		return err
	}
	s.director = &director{stage: s.stage, script: s.script, manager: s.manager, teller: s.teller, witness: newWitness(time.Now), programmers: newProgrammers(s.script.Components)}
	s.director.witness.wants = s.script.wants()
	var err error
	if s.director.endpoints, err = serveEndpoints(ctx); err != nil {
		return err
	}
	if err := s.startPods(ctx); err != nil {
		return err
	}
	if s.director.reporters, err = s.newReporters(ctx); err != nil {
		return err
	}
	if err := s.director.witness.follow(ctx, s.stage.config); err != nil {
		return err
	}
	if s.director.source, err = live.NewSource(s.stage.config); err != nil {
		return err
	}
	if s.director.fleet, err = s.director.source.Follow(ctx, true); err != nil {
		return err
	}
	return s.serveDashboard(ctx)
}

// startPods starts what a story with rules for pods needs. Agents run when their nodes have joined.
func (s *show) startPods(ctx context.Context) error {
	if err := s.director.programmers.follow(ctx, s.stage.config); err != nil {
		return err
	}
	if !s.script.gatesPods() {
		return nil
	}
	if err := s.stage.installAgents(ctx, s.Root); err != nil {
		return err
	}
	s.director.agents = newAgents(s.stage.asAgent)
	return nil
}

// openCluster starts a control plane with Readygate on it.
func (s *show) openCluster(ctx context.Context) error {
	say := func(what string) { s.teller.say(s.teller.style.Dim("demo: " + what)) }
	var err error
	if s.stage, err = startPlane(ctx, s.Binaries, s.dir, say); err != nil {
		return err
	}
	say("installing Readygate, and starting its manager")
	if err := s.stage.installCRDs(ctx); err != nil {
		return err
	}
	if err := s.stage.installManager(ctx, s.Root); err != nil {
		return err
	}
	config, err := s.stage.as(ctx, admission.ManagerNamespace, admission.ManagerAccount, nil)
	if err != nil {
		return err
	}
	s.manager = runManager(config)
	return nil
}

// newReporters makes the reporters of the story; none runs yet.
func (s *show) newReporters(ctx context.Context) (*fleetReporters, error) {
	config, err := s.stage.as(ctx, Namespace, reporterAccount, nil)
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
	return newReporters(s.dir, connection, s.director.endpoints, s.script.Components), nil
}

// serveDashboard serves the page until the context is over.
func (s *show) serveDashboard(ctx context.Context) error {
	listener, err := dashboard.Listen(0)
	if err != nil {
		return err
	}
	server := dashboard.New(dashboard.Options{
		Fleet: s.director.fleet,
		Story: func(ctx context.Context, node string) (view.Story, error) {
			return s.director.source.Story(ctx, node, time.Now)
		},
		PodStory: func(ctx context.Context, namespace, name string) (view.PodStory, error) {
			return s.director.source.PodStory(ctx, namespace, name, time.Now)
		},
		Now: time.Now, Title: "demo: " + s.script.Title,
	})
	s.teller.url = "http://" + listener.Addr().String()
	s.teller.say("", fmt.Sprintf("The dashboard: %s   (logs: %s; the story takes %s)", s.teller.url, s.log.Name(), about(s.script.Length())), "")
	s.served.Go(func() {
		if err := server.Serve(ctx, listener); err != nil {
			slog.Error("serving the dashboard", "error", err)
		}
	})
	return nil
}

// stop ends everything that was started.
func (s *show) stop() error {
	var errs []error
	if s.director != nil {
		s.director.agents.stop()
		s.director.programmers.stop()
		if s.director.reporters != nil {
			s.director.reporters.stop()
		}
		if s.director.endpoints != nil {
			errs = append(errs, s.director.endpoints.close())
		}
	}
	errs = append(errs, s.manager.stop())
	if s.stage != nil {
		errs = append(errs, s.stage.plane.Stop())
	}
	return errors.Join(errs...)
}
